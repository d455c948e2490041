"""Every kernel runs as it is compiled and as the plain Python function that was compiled."""

import pytest


@pytest.fixture(params=["compiled", "python"])
def twin(request):
    """Kernel -> its compiled form, or its plain Python form (other kernels that it calls stay compiled)."""
    return {"compiled": lambda kernel: kernel, "python": lambda kernel: kernel.py_func}[request.param]
