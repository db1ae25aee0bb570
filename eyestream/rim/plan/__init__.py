"""The plan: a configuration with everything that it names, resolved once. All commands read it.

What carries a configuration on its way:

| type | what it is for |
|---|---|
| `rim.config.Settings` | the tables of the file as they are written, read strictly |
| `rim.sources.registry.NamedSource` | a ``[[source]]`` table with the kind and the profile that it names |
| `plan.stream.StreamParts` | what a stream is made of: rows, front end, mechanism. No ceiling changes it |
| `core.scopes.Deployment` | what a mechanism's promises rest on: ceilings, and the streams beside its own |
| `StreamPlan` | a stream with all of that, and what is said of it |
| `Plan` | all streams and sources; what the sidecar, `check`, `guarantee` and `deploy` read |
"""

from eyestream.rim.plan.plan import Plan, load, resolved
from eyestream.rim.plan.stream import StreamPlan

__all__ = ["Plan", "StreamPlan", "load", "resolved"]
