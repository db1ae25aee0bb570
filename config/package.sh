#!/bin/sh
# A Debian package, or an image, of the product: sh config/package.sh deb | image
#
# Wheels are built first, of the locked versions. The package brings them along and makes /opt/eyestream of them, so that
# nothing is downloaded where it is installed. The image is made by docker, or else by podman.
set -eu
cd "$(dirname "$0")/.."
what=${1:-}
case $what in deb | image) ;; *) echo "sh config/package.sh deb | image" >&2 && exit 2 ;; esac

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
"${PYTHON:-python3}" -m pip wheel -q -w "$wheels" --require-hashes -r locks/sidecar.txt
"${PYTHON:-python3}" -m pip wheel -q -w "$wheels" --no-deps .

if [ "$what" = image ]; then
    mkdir -p dist
    cp "$wheels"/*.whl dist/
    exec "$(command -v docker || command -v podman)" build -t eyestream --target product -f Containerfile .
fi

version=$(basename "$wheels"/eyestream-*.whl | cut -d- -f2)
architecture=$(dpkg --print-architecture)
root=$wheels/root
mkdir -p "$root/DEBIAN" "$root/usr/share/eyestream/wheels" "$root/usr/bin" dist
cp "$wheels"/*.whl "$root/usr/share/eyestream/wheels/"
cp locks/sidecar.txt "$root/usr/share/eyestream/"
ln -s /opt/eyestream/bin/eyestream "$root/usr/bin/eyestream"
# Wheels with compiled code are of one minor version of Python.
python=$("${PYTHON:-python3}" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" \
    -e "s/@PYTHON@/$python/" -e "s/@NEXT@/${python%.*}.$((${python#*.} + 1))/" \
    config/debian/control > "$root/DEBIAN/control"
for script in postinst prerm; do install -m 755 "config/debian/$script" "$root/DEBIAN/$script"; done
dpkg-deb --root-owner-group --build "$root" "dist/eyestream_${version}_$architecture.deb" > /dev/null
echo "dist/eyestream_${version}_$architecture.deb"
