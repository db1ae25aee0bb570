"""The package for Unity, without Unity: mono compiles and runs it, against stubs of the engine that are ours."""
