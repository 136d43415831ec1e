"""Guard of the readers: whatever goes wrong over a file of others is told in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from daskdl.errors import DaskdlError, ModelFileError

#: Exceptions that a damaged file makes of code that takes it for whole.
DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


@contextmanager
def reading(where: str, kind: str = "") -> Iterator[None]:
    """Make a ModelFileError of what goes wrong while a file is read.

    Parameters
    ----------
    where : str
        The file, for the sentence.
    kind : str
        The format, for the sentence.

    Raises
    ------
    ModelFileError
    """
    try:
        yield
    except ModelFileError:
        raise
    except DaskdlError as error:
        raise ModelFileError(f"{where}: {error}") from error
    except DAMAGE as error:
        whole = f"valid {kind}".rstrip()
        raise ModelFileError(
            f"{where}: damaged or not {whole} ({error}); copy or save it again"
        ) from error
