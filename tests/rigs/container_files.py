"""What Compose and Kubernetes take, as far as our files use it: keys, types, and what must agree within a file.

Written down from the Compose specification and the API reference of Kubernetes 1.33. Keys that our files do not use are
left out, so a key that is misspelt, or stands at another place, is refused. No container is started.
"""

import re
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

__all__ = ["check_compose", "check_kubernetes"]

Name = Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
Port = Annotated[int, Meta(ge=1, le=65_535)]


class _Compose(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    pass


_Key = Annotated[str, Meta(pattern=r"^[a-zA-Z0-9._-]+$")]
_Duration = Annotated[str, Meta(pattern=r"^(\d+(us|ms|s|m|h))+$")]
_Bytes = Annotated[str, Meta(pattern=r"^\d+(b|k|m|g|kb|mb|gb)$")]
_Mount = Annotated[str, Meta(pattern=r"^[^:]+:/[^:]*(:(ro|rw))?$")]
_Published = Annotated[str, Meta(pattern=r"^(\d+\.\d+\.\d+\.\d+:)?\d+:\d+$")]
_Image = Annotated[str, Meta(pattern=r"^[a-z0-9./-]+(:[\w.-]+)?$")]
_Words = str | list[str]


class Build(_Compose):
    context: str
    dockerfile: str = "Dockerfile"
    target: str | UnsetType = UNSET


class Health(_Compose):
    test: Annotated[list[str], Meta(min_length=2)] | UnsetType = UNSET
    disable: bool = False
    interval: _Duration | UnsetType = UNSET
    timeout: _Duration | UnsetType = UNSET
    retries: int | UnsetType = UNSET


class Dependence(_Compose):
    condition: Literal["service_started", "service_healthy", "service_completed_successfully"]


class ComposeService(_Compose):
    image: _Image | UnsetType = UNSET
    build: Build | UnsetType = UNSET
    command: _Words | UnsetType = UNSET
    entrypoint: _Words | UnsetType = UNSET
    environment: dict[str, str] = {}
    ports: list[_Published] = []
    volumes: list[_Mount] = []
    tmpfs: list[str] = []
    depends_on: list[_Key] | dict[_Key, Dependence] = []
    network_mode: Annotated[str, Meta(pattern=r"^(host|none|bridge|service:[a-zA-Z0-9._-]+)$")] | UnsetType = UNSET
    restart: Literal["no", "always", "on-failure", "unless-stopped"] | UnsetType = UNSET
    read_only: bool = False
    cap_drop: list[str] = []
    security_opt: list[str] = []
    ulimits: dict[str, int] = {}
    stop_signal: Annotated[str, Meta(pattern="^SIG[A-Z0-9]+$")] | UnsetType = UNSET
    stop_grace_period: _Duration | UnsetType = UNSET
    healthcheck: Health | UnsetType = UNSET
    mem_limit: _Bytes | UnsetType = UNSET
    memswap_limit: _Bytes | UnsetType = UNSET


class ComposeFile(_Compose):
    services: Annotated[dict[_Key, ComposeService], Meta(min_length=1)]
    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9_-]*$")] | UnsetType = UNSET
    volumes: dict[_Key, None] = {}


def check_compose(told: dict[str, Any]) -> None:
    """Raise ValueError where a file, as YAML has it, is none that Compose takes."""
    file = msgspec.convert({key: value for key, value in told.items() if not key.startswith("x-")}, ComposeFile)
    for name, service in file.services.items():
        named = [one.split(":")[0] for one in service.volumes]
        _all_in([one for one in named if not re.match(r"[./~]", one)], file.volumes, f"{name}: volumes")
        _all_in(list(service.depends_on), file.services, f"{name}: depends_on")
        if isinstance(service.network_mode, str) and service.network_mode.startswith("service:"):
            _all_in([service.network_mode.removeprefix("service:")], file.services, f"{name}: network_mode")
        if service.image is UNSET and service.build is UNSET:
            raise ValueError(f"{name}: neither image nor build")
        if (
            service.healthcheck is not UNSET
            and service.healthcheck.test is not UNSET
            and service.healthcheck.test[0] not in ("CMD", "CMD-SHELL")
        ):
            raise ValueError(f"{name}: healthcheck begins with CMD or CMD-SHELL")


def _all_in(names: list[str], known: Any, where: str) -> None:
    missing = sorted(set(names) - set(known))
    if missing:
        raise ValueError(f"{where}: there is no {', '.join(missing)}")


class _Api(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    pass


_Labels = dict[Annotated[str, Meta(pattern=r"^([a-z0-9.-]+/)?[A-Za-z0-9._-]{1,63}$")], str]
_Quantity = Annotated[str, Meta(pattern=r"^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$")]
_PortName = Annotated[str, Meta(pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=15)]


class Metadata(_Api):
    name: Name
    labels: _Labels = {}
    annotations: _Labels = {}


class PodMetadata(_Api):
    labels: _Labels
    annotations: _Labels = {}


class Selector(_Api):
    match_labels: _Labels


class ServicePort(_Api):
    port: Port
    name: _PortName | UnsetType = UNSET


class ServiceSpec(_Api):
    selector: _Labels
    ports: Annotated[list[ServicePort], Meta(min_length=1)]
    cluster_ip: str | UnsetType = field(default=UNSET, name="clusterIP")
    publish_not_ready_addresses: bool = False


class HttpGet(_Api):
    path: Annotated[str, Meta(pattern="^/")]
    port: Port


class Probe(_Api):
    http_get: HttpGet
    period_seconds: Annotated[int, Meta(ge=1)] = 10


class Exec(_Api):
    command: list[str]


class Handler(_Api):
    exec: Exec


class Lifecycle(_Api):
    pre_stop: Handler


class FieldRef(_Api):
    field_path: Literal["metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName"]


class ValueFrom(_Api):
    field_ref: FieldRef


class Variable(_Api):
    name: Annotated[str, Meta(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
    value: str | UnsetType = UNSET
    value_from: ValueFrom | UnsetType = UNSET


class ContainerPort(_Api):
    container_port: Port


class Mount(_Api):
    name: Name
    mount_path: Annotated[str, Meta(pattern="^/")]


class Resources(_Api):
    requests: dict[Literal["cpu", "memory", "storage"], _Quantity] = {}
    limits: dict[Literal["cpu", "memory"], _Quantity] = {}


class Capabilities(_Api):
    drop: list[str]


class ContainerSecurity(_Api):
    read_only_root_filesystem: bool
    allow_privilege_escalation: bool
    capabilities: Capabilities


class Container(_Api):
    name: Name
    image: _Image
    command: list[str] = []
    args: list[str] = []
    env: list[Variable] = []
    ports: list[ContainerPort] = []
    lifecycle: Lifecycle | UnsetType = UNSET
    readiness_probe: Probe | UnsetType = UNSET
    security_context: ContainerSecurity | UnsetType = UNSET
    resources: Resources | UnsetType = UNSET
    volume_mounts: list[Mount] = []


class ConfigMapSource(_Api):
    name: Name


class Volume(_Api):
    name: Name
    config_map: ConfigMapSource


class DnsConfig(_Api):
    searches: list[str]


class Seccomp(_Api):
    type: Literal["RuntimeDefault", "Unconfined", "Localhost"]


class PodSecurity(_Api):
    run_as_non_root: bool
    run_as_user: int
    fs_group: int
    seccomp_profile: Seccomp


class AffinityTerm(_Api):
    topology_key: str
    label_selector: Selector


class PodAntiAffinity(_Api):
    required: list[AffinityTerm] = field(name="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(_Api):
    pod_anti_affinity: PodAntiAffinity


class PodSpec(_Api):
    containers: Annotated[list[Container], Meta(min_length=1)]
    volumes: list[Volume] = []
    dns_config: DnsConfig | UnsetType = UNSET
    affinity: Affinity | UnsetType = UNSET
    security_context: PodSecurity | UnsetType = UNSET
    automount_service_account_token: bool = True
    termination_grace_period_seconds: Annotated[int, Meta(ge=0)] = 30


class Template(_Api):
    metadata: PodMetadata
    spec: PodSpec


class ClaimSpec(_Api):
    access_modes: list[Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]]
    resources: Resources


class Claim(_Api):
    metadata: Metadata
    spec: ClaimSpec


class StatefulSetSpec(_Api):
    service_name: Name
    replicas: Annotated[int, Meta(ge=0)]
    selector: Selector
    template: Template
    volume_claim_templates: list[Claim] = []
    pod_management_policy: Literal["OrderedReady", "Parallel"] = "OrderedReady"


class DisruptionSpec(_Api):
    max_unavailable: int
    selector: Selector


class Service(_Api, tag_field="kind"):
    api_version: Literal["v1"]
    metadata: Metadata
    spec: ServiceSpec


class StatefulSet(_Api, tag_field="kind"):
    api_version: Literal["apps/v1"]
    metadata: Metadata
    spec: StatefulSetSpec


class PodDisruptionBudget(_Api, tag_field="kind"):
    api_version: Literal["policy/v1"]
    metadata: Metadata
    spec: DisruptionSpec


def check_kubernetes(told: list[dict[str, Any]]) -> None:
    """Raise ValueError where objects, as YAML has them, are none that the API takes, or refer to what is not there."""
    objects = msgspec.convert(told, list[Service | StatefulSet | PodDisruptionBudget])
    services = {one.metadata.name: one for one in objects if isinstance(one, Service)}
    sets = [one for one in objects if isinstance(one, StatefulSet)]
    for one in sets:
        spec, pod, name = one.spec, one.spec.template, one.metadata.name
        _all_in([spec.service_name], services, f"{name}: serviceName")
        for labels in (spec.selector.match_labels, services[spec.service_name].spec.selector):
            if not labels.items() <= pod.metadata.labels.items():
                raise ValueError(f"{name}: a selector is not of its pods: {labels}")
        volumes = [volume.name for volume in pod.spec.volumes]
        volumes += [claim.metadata.name for claim in spec.volume_claim_templates]
        for container in pod.spec.containers:
            _all_in([mount.name for mount in container.volume_mounts], volumes, f"{name}: volumeMounts")
    known = [one.spec.selector.match_labels for one in sets]
    for other in objects:
        if isinstance(other, PodDisruptionBudget) and other.spec.selector.match_labels not in known:
            raise ValueError(f"{other.metadata.name}: selects nobody")
