"""The ``cluster`` block of a job: ``ClusterSettings``, whose fields are the only list of its keys.

Each field declares what its value may be, what it means and what happens without it; the table that reads and
checks the block is made from them. Times are seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from profrun.contract.options import Flag, Many, Text, Whole, Word, option
from profrun.jobs.kinds import Text as JobText
from profrun.jobs.kinds import Variable
from profrun.jobs.number_kinds import seconds
from profrun.jobs.tables import AnyMap, Field, ListOf, MapOf, Table, table_of

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_LABELS = MapOf(Variable(), r"\S{1,317}", "a label without spaces", "{disk: nvme}")
_LINES = Many(Text("one line", r"[^\n]+"), example="['--comment=x']")
_QUANTITIES = MapOf(
    JobText("a quantity like 1 or 5120Mi", r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?|Ki)?", raw=True),
    _LABEL,
    "the name of a resource",
    "{rdma/ib: 1}",
    low=1,
)

Loosening = Literal[
    "allowPrivilegeEscalation",
    "appArmorProfile",
    "automountServiceAccountToken",
    "capabilities",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostPath",
    "hostPort",
    "privileged",
    "procMount",
    "readOnlyRootFilesystem",
    "runAsNonRoot",
    "runAsUser",
    "seLinuxOptions",
    "seccompProfile",
    "serviceAccountToken",
    "sysctls",
]
"""Fields of a pod by which a patch can make it less secure; each only where the job names it."""


def _text(doc: str, default: str = "", what: str = "a name", pattern: str = r"\S+") -> Any:
    return option(Text(what, pattern, unquoted=True), doc, default)


@dataclass(frozen=True)
class Toleration:
    """A taint that pods bear, in the words of Kubernetes; None where it is not given."""

    key: str | None = _text("Key of the taint.", pattern=_LABEL)
    operator: str | None = option(Word(("Exists", "Equal")), "How the value is matched.", "Equal")
    value: str | None = _text("Value of the taint.")
    effect: str | None = option(
        Word(("NoSchedule", "PreferNoSchedule", "NoExecute")), "Effect of the taint.", "any"
    )
    seconds: int | None = option(Whole(0), "How long NoExecute is borne.", "for ever")


TOLERATION = table_of(Toleration, "keys of a toleration")


@dataclass(frozen=True)
class ClusterSettings:
    """Settings of a cluster: None where the job gives none; each backend takes those that it knows.

    Attributes:
        sites: name -> its settings, which win over these; a site has no sites of its own.
    """

    profile: str | None = _text("A profile of the user's clusters.yaml; keys given here win over it.")
    shared: str | None = _text(
        "Folder that the compute nodes see too, for the run.", "the runs folder", "a path", r"\S.*"
    )
    scratch: str | None = _text(
        "Folder on the nodes' own disks in which profilers record, like `$SLURM_TMPDIR` or `/tmp`; the files "
        "are moved to the run's folder at the end of a trial.",
        "they record into the run's folder",
        "a path",
        r"\S.*",
    )
    vendor: Literal["nvidia", "amd", "none"] | None = option(
        Word(("nvidia", "amd", "none")), "Whose GPUs its nodes have, if the job cannot see it.", "auto"
    )
    partition: str | None = _text("Slurm partition; several, with commas, for whichever is first.")
    account: str | None = _text("Slurm account.")
    qos: str | None = _text("Slurm quality of service.")
    time: float | None = option(
        seconds(60, clock=True), "Time limit of the job.", "trial timeout and time to finalise"
    )
    constraint: str | None = _text("Node features.", what="a constraint", pattern=r"\S.*")
    reservation: str | None = _text("Reservation.")
    nodelist: str | None = _text("Nodes to use.")
    exclude: str | None = _text("Nodes to avoid.")
    exclusive: bool | None = option(Flag(), "Whole nodes.", "false")
    gpu_directive: Literal["gpus-per-node", "gres", "none"] | None = option(
        Word(("gpus-per-node", "gres", "none")), "How the cluster wants GPUs asked for.", "gpus-per-node"
    )
    gpu_type: str | None = _text("GPU type in that request, e.g. h200.")
    runtime: Literal["pyxis", "apptainer", "docker", "charliecloud", "none"] | None = option(
        Word(("pyxis", "apptainer", "docker", "charliecloud", "none")),
        "What runs the image on a node.",
        "none",
    )
    rootfs: str | None = _text(
        "Unpacked image or image file for charliecloud and apptainer.", "the image", "a path", r"\S.*"
    )
    modules: tuple[str, ...] | None = option(
        Many(Text("a module", r"\S+"), example="[cuda/12.4]"), "`module load` these first."
    )
    setup: tuple[str, ...] | None = option(_LINES, "Shell lines before the trial.")
    extra: tuple[str, ...] | None = option(_LINES, "Further `#SBATCH` options, like `--comment=x`.")
    srun_extra: tuple[str, ...] | None = option(
        Many(Text("an option of srun", r"--?[A-Za-z][^\n]*"), example="[--mpi=pmix]"),
        "Further options of srun.",
    )
    poll: float | None = option(
        seconds(5), "Slurm is asked this often, and up to every 30 s while nothing changes.", "5s"
    )
    allocation: Literal["one", "each"] | None = option(
        Word(("one", "each")),
        "One allocation for all trials, one after another on the same nodes, or one for each trial.",
        "one for comparisons that fit a time limit",
    )
    parallel: int | None = option(Whole(1, 10_000), "Trials that may run at the same time.", "1")
    context: str | None = _text("Context of the kubeconfig.", "the current one")
    namespace: str | None = _text("Kubernetes namespace.", "the context's")
    queue: str | None = _text("Kueue queue.")
    priority_class: str | None = _text("Priority class.")
    service_account: str | None = _text("Service account.")
    pvc: str | None = _text("Persistent volume claim that holds the run folder.")
    pvc_path: str | None = _text(
        "Where the claim is mounted in the pod.", "/runs", "an absolute path", r"/\S*"
    )
    gpu_resource: str | None = _text(
        "Resource to ask for instead of nvidia.com/gpu or amd.com/gpu.", pattern=_LABEL
    )
    pod_resources: Mapping[str, str] | None = option(
        _QUANTITIES,
        "Further resources of each pod, requested and limited, such as `rdma/ib`, `vpc.amazonaws.com/efa` "
        "or `hugepages-2Mi`.",
    )
    node_selector: Mapping[str, str] | None = option(_LABELS, "Labels that a node must have.")
    affinity: Mapping[str, object] | None = option(
        AnyMap("{nodeAffinity: {...}}"), "Affinity of the pods, as Kubernetes writes it."
    )
    topology_spread: tuple[Mapping[str, object], ...] | None = option(
        ListOf(AnyMap("{maxSkew: 1, topologyKey: rack, ...}"), low=1, example="[{topologyKey: rack, ...}]"),
        "How the pods of a trial are spread: `topologySpreadConstraints` as Kubernetes writes them; without "
        "a `labelSelector` the pods of the trial's Job are counted.",
    )
    scheduler_name: str | None = _text("Scheduler of the pods, such as `volcano`.", "the cluster's default")
    runtime_class: str | None = _text("Runtime class of the pods, such as `nvidia`.", "the cluster's default")
    fs_group: int | None = option(
        Whole(1), "Group that owns the pods' volumes and that their processes are in (`fsGroup`)."
    )
    supplemental_groups: tuple[int, ...] | None = option(
        Many(Whole(1), 1, True, "[2000]"), "Further groups of the pods' processes."
    )
    host_ipc: bool | None = option(
        Flag(), "The pods use the node's shared memory, and its `/dev/shm` instead of their own.", "false"
    )
    ipc_lock: bool | None = option(
        Flag(), "The program may lock any amount of memory (`IPC_LOCK`), as RDMA libraries do.", "false"
    )
    pod_patch: Mapping[str, object] | None = option(
        AnyMap("{spec: {...}}"),
        "Laid over the pods' template by the rules of a strategic merge patch "
        "([kubernetes.md](kubernetes.md#any-other-field-of-the-pod)).",
    )
    pod_patch_allow: tuple[Loosening, ...] | None = option(
        Many(Word(get_args(Loosening)), unique=True, example="[hostNetwork]"),
        "Fields by which `pod_patch` may make the pods less secure.",
        "none",
    )
    labels: Mapping[str, str] | None = option(_LABELS, "Labels of the job and its pods.")
    annotations: Mapping[str, str] | None = option(_LABELS, "Annotations of the job and its pods.")
    tolerations: tuple[Toleration, ...] | None = option(
        ListOf(TOLERATION, example="[{key: gpu, operator: Exists}]"), "Taints to bear."
    )
    image_pull_secrets: tuple[str, ...] | None = option(
        Many(Text("a name", r"\S+"), example="[name]"), "Secrets to pull images with."
    )
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = option(
        Word(("Always", "IfNotPresent", "Never")), "When images are pulled.", "IfNotPresent"
    )
    ttl: float | None = option(seconds(0), "Keep finished Kubernetes jobs this long.", "1h")
    sites: Mapping[str, ClusterSettings] = field(default_factory=dict)

    def over(self, base: ClusterSettings) -> ClusterSettings:
        """These settings, and where they say nothing those of ``base``; the sites stay these."""
        given = {
            item.name: value
            for item in dataclasses.fields(self)
            if (value := getattr(self, item.name)) is not None
        }
        return dataclasses.replace(base, **given)

    def of_site(self, site: str | None) -> ClusterSettings:
        """The settings of a trial at a site (None: the job names no sites): its own over these."""
        own = self.sites[site] if site is not None else ClusterSettings()
        return dataclasses.replace(own.over(self), sites={}, profile=None)


SITE = table_of(ClusterSettings, "keys of a site")
"""What a site may say; also what each profile in a clusters.yaml holds."""

CLUSTER = Table(
    {
        **SITE.fields,
        "sites": Field(
            MapOf(
                SITE, r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}", "letters, digits, '.', '_' and '-'", "{h200: {...}}"
            ),
            "Run every trial at each of these, e.g. two partitions with GPUs of different vendors; a site "
            "has the keys of `cluster` and wins over them.",
        ),
    },
    "keys of 'cluster'",
    ClusterSettings,
)
"""The ``cluster`` block."""
