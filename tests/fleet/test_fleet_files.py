"""The files of a fleet: they agree with one another and with the code. No container is started here."""

import json
import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from eyestream.rim.config import load
from eyestream.rim.plan import load as planned
from eyestream_fleet.command import worker_metrics, worker_pages
from eyestream_fleet.shard import Position
from eyestream_fleet.table import fleet_of
from tests.rigs.container_files import check_compose, check_kubernetes
from tests.rigs.nats import nats_program

ROOT = Path(__file__).parents[2]
FLEET = ROOT / "config" / "fleet"
COMPOSE: dict[str, Any] = yaml.safe_load((FLEET / "compose.yaml").read_text())
PODS: dict[tuple[str, str], dict[str, Any]] = {
    (one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all((FLEET / "kubernetes.yaml").read_text())
}
SETTINGS = load(FLEET / "fleet.toml")
BOARD = json.loads((FLEET / "grafana-board.json").read_text())


def fleet() -> Any:
    return fleet_of(SETTINGS)


def worker() -> Any:
    shard = SimpleNamespace(streams={}, former=[], taken=0, rejected={}, position=Position("", 0, (-1, 0.0)))
    return SimpleNamespace(shard=shard, published=0, breaks=0, stands=True, waiting=0, ahead_s=0.0)


def test_compose_takes_its_file() -> None:
    """By keys and types of the specification, as we wrote them down."""
    check_compose(COMPOSE)
    for wrong in (
        ("restart: on-failure", "restart: sometimes"),
        ("mem_limit: 5g", "mem_limit: 5 GiB"),
        ("cap_drop", "drop_cap"),
        ("stop_grace_period: 60s", "stop_grace_period: 60"),
        ("depends_on: [nats-0", "depends_on: [nats-9"),
        ('"shard-0:/var', '"shard-7:/var'),
    ):
        with pytest.raises(ValueError, match=r"\$|there is no"):
            check_compose(yaml.safe_load(changed("compose.yaml", *wrong)))


def test_kubernetes_takes_its_file() -> None:
    """By keys and types of the API reference, as we wrote them down."""
    check_kubernetes(list(PODS.values()))
    for wrong in (
        ("replicas: 4", 'replicas: "4"'),
        ("readinessProbe", "readyProbe"),
        ("apiVersion: policy/v1", "apiVersion: policy/v1beta1"),
        ("memory: 512Mi", "memory: 512MB"),
        ("ReadWriteOncePod", "ReadWriteOnePod"),
        ("serviceName: shard", "serviceName: shards"),
        ("labels: {app: shard}", "labels: {app: worker}"),
        ("{name: shard, mountPath", "{name: ledger, mountPath"),
    ):
        with pytest.raises(ValueError, match=r"\$|there is no|selector"):
            check_kubernetes(list(yaml.safe_load_all(changed("kubernetes.yaml", *wrong))))


def changed(name: str, old: str, new: str) -> str:
    text = (FLEET / name).read_text()
    assert old in text
    return text.replace(old, new)


def test_the_configuration_can_be_used_and_names_the_listener() -> None:
    assert planned(FLEET / "fleet.toml").served
    assert SETTINGS.private.url == "mqtt://nats-0:1883"


def test_all_have_as_many_partitions() -> None:
    count = fleet().partitions
    shards = [f"shard-{n}" for n in range(count)]
    assert [name for name in COMPOSE["services"] if name.startswith("shard")] == shards
    for number, name in enumerate(shards):
        command = COMPOSE["services"][name]["command"]
        assert command == ["shard", "--config", "/etc/eyestream/fleet.toml", "--partition", str(number)]
        assert f"{name}:{fleet().folder}" in COMPOSE["services"][name]["volumes"]
    assert PODS["StatefulSet", "shard"]["spec"]["replicas"] == count
    scraped = yaml.safe_load((FLEET / "prometheus.yml").read_text())["scrape_configs"][0]["static_configs"][0]
    assert SETTINGS.metrics is not None
    assert scraped["targets"] == [f"{name}:{SETTINGS.metrics.port}" for name in shards]
    assert f"partition({count},1)" in (FLEET / "nats.conf").read_text()


def test_three_servers_are_named_alike_everywhere() -> None:
    names = [f"nats-{n}" for n in range(fleet().replicas)]
    assert [server.split("/")[2] for server in fleet().servers] == [f"{name}:4222" for name in names]
    assert [name for name in COMPOSE["services"] if name.startswith("nats")] == names
    routes = re.findall(r"nats://([^:]+):6222", (FLEET / "nats.conf").read_text())
    assert routes == names
    assert PODS["StatefulSet", "nats"]["spec"]["replicas"] == len(names)


def test_what_compose_names_is_there_and_no_other_machine_reaches_it() -> None:
    for service in COMPOSE["services"].values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert (FLEET / source).exists() if source.startswith(".") else source in COMPOSE["volumes"]
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert ports == ["127.0.0.1:1883:1883", "127.0.0.1:3000:3000"]
    build = COMPOSE["x-worker"]["build"]
    assert (FLEET / build["context"] / build["dockerfile"]).exists()


def test_pods_have_a_volume_each_and_ask_for_pages_that_there_are() -> None:
    """One volume for one node is what keeps two workers from one shard; no pod makes a ledger by itself."""
    shard = PODS["StatefulSet", "shard"]["spec"]
    for kind in ("nats", "shard"):
        (claim,) = PODS["StatefulSet", kind]["spec"]["volumeClaimTemplates"]
        assert claim["spec"]["accessModes"] == ["ReadWriteOncePod"]
    (container,) = shard["template"]["spec"]["containers"]
    assert SETTINGS.metrics is not None
    probe = container["readinessProbe"]["httpGet"]
    assert probe["path"] in worker_pages(worker())
    assert {probe["port"], container["ports"][0]["containerPort"]} == {SETTINGS.metrics.port}
    assert SETTINGS.metrics.address == "0.0.0.0"
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounts == {"configuration": "/etc/eyestream", "shard": str(fleet().folder)}
    assert "--new" not in container["args"][0]
    named = {volume["configMap"]["name"] for volume in shard["template"]["spec"]["volumes"]}
    assert named == {"eyestream"}


def test_the_board_asks_for_figures_that_there_are() -> None:
    known = set(re.findall(r"^# TYPE (\S+)", worker_metrics(worker()), re.MULTILINE))
    asked = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    named = {name for expression in asked for name in re.findall(r"eyestream_\w+", expression)}
    assert named <= known
    assert len(named) >= 7, "control: figures were found"
    labels = {label for expression in asked for label in re.findall(r"by \((\w+)\)", expression)} - {"instance"}
    assert labels <= set(re.findall(r"\{(\w+)=", worker_metrics(full())))
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])


def full() -> Any:
    """A worker with something in each family."""
    counts = SimpleNamespace(due=1, released=1, withheld={"day": 1}, dropped={"mechanism": 1})
    rows = SimpleNamespace(
        **dict.fromkeys(("accepted", "late", "duplicate", "stale_session", "refused", "jump", "wearer"), 1)
    )
    made = worker()
    made.shard.streams = {"d": SimpleNamespace(counters=counts, rows=rows)}
    made.shard.rejected = {"topic": 1}
    return made


def test_a_server_that_is_replaced_hands_its_leaders_on_and_is_whole_before_the_next_one() -> None:
    """By the signal for lame duck, with more time than it takes; both files ask the same page for its health."""
    server = dict(re.findall(r'^(\w+): "?([\w/.]+)', (FLEET / "nats.conf").read_text(), re.MULTILINE))
    takes_s = int(server["lame_duck_duration"].rstrip("s"))
    page = f":{server['http_port']}/healthz"
    composed = COMPOSE["x-nats"]
    assert composed["stop_signal"] == "SIGUSR2"
    assert int(composed["stop_grace_period"].rstrip("s")) > takes_s
    assert composed["healthcheck"]["test"][-1].endswith(page)
    pod = PODS["StatefulSet", "nats"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > takes_s
    (container,) = pod["containers"]
    assert container["lifecycle"]["preStop"]["exec"]["command"] == [
        "nats-server",
        "--signal",
        f"ldm={server['pid_file']}",
    ]
    probe = container["readinessProbe"]["httpGet"]
    assert f":{probe['port']}{probe['path']}" == page


@pytest.mark.needs("nats")
def test_nats_takes_its_configuration(tmp_path: Path) -> None:
    from eyestream_fleet.nats.log import mapping

    program = nats_program()
    assert program is not None
    text = (FLEET / "nats.conf").read_text().replace('"/data', f'"{tmp_path}')
    source, target = mapping(fleet().partitions)
    assert f'"{source}": "{target}"' in text

    def taken(configuration: str) -> bool:
        (tmp_path / "nats.conf").write_text(configuration)
        command = [program, "-t", "-c", str(tmp_path / "nats.conf")]
        return not subprocess.run(
            command, env=os.environ | {"NATS_NAME": "nats-0"}, capture_output=True, check=False
        ).returncode

    assert taken(text)
    assert not taken(text.replace("max_mem", "most_mem")), "control"
