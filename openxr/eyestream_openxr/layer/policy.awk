# policy.txt, then headers or lists of names -> policy.h. An extension that policy.txt does not know ends it with 1.
function bad(why) { print FILENAME ":" FNR ": " why > "/dev/stderr"; failed = 1; exit 1 }
FILENAME == ARGV[1] {
    if (/^#/ || NF == 0) next
    if (/^ /) {
        if ($1 != "calls" || NF < 2 || verdict != "deny") bad("functions stand below a denied extension: calls NAME ...")
        for (i = 2; i <= NF; i++) functions[++calls] = $i
        next
    }
    verdict = $1
    if (verdict !~ /^(pass|replace|deny)$/) bad("the verdict is pass, replace or deny, not " verdict)
    if ($2 !~ /^XR_[A-Za-z0-9_]+$/) bad($2 " is no name of an extension")
    if ($3 !~ /^[0-9]+\.[0-9]+\.[0-9]+$/ || NF < 4) bad($2 " needs the version that it was read in, and a reason")
    if ($2 in known) bad($2 " is here twice")
    known[$2] = verdict
    if (verdict == "pass") passing[++passed] = $2
    next
}
{ # "XR_EXT_name" in a header's definition of an extension's name, or a line of its own
    name = ""
    if (match($0, /_EXTENSION_NAME +"XR_[A-Za-z0-9_]+"/)) {
        name = substr($0, RSTART, RLENGTH)
        gsub(/^[^"]*"|"$/, "", name)
    } else if ($0 ~ /^XR_[A-Za-z0-9_]+$/) name = $0
    if (name != "" && !(name in known)) {
        print FILENAME ": " name " is not in " ARGV[1] ": read it, and add a line" > "/dev/stderr"
        failed = 1
    }
}
END {
    if (failed) exit 1
    print "/* Made of policy.txt. */"
    print "static const char *const passed_extensions[] = {"
    for (i = 1; i <= passed; i++) print "    \"" passing[i] "\","
    print "};\nstatic const char *const denied_functions[] = {"
    for (i = 1; i <= calls; i++) print "    \"" functions[i] "\","
    print "};"
}
