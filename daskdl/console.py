"""Run command lines of this package: shared options, errors, exit codes.

Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 a bug in
daskdl, 2 usage or settings, 3 input data, 4 cluster, 5 checkpoint, 130 interrupted (Ctrl-C), 143
terminated (SIGTERM).
"""

from __future__ import annotations

import argparse
import errno
import functools
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from daskdl.errors import TRACEBACK, DaskdlError, MissingExtraError
from daskdl.signals import interrupts_not_lost, terminated_as_exit
from daskdl.version import __version__

INTERNAL, UNREADABLE, INTERRUPTED, TERMINATED = 1, 3, 130, 143
ENDINGS = {INTERRUPTED: "interrupted", TERMINATED: "terminated"}


def _tell_version(context: typer.Context, wanted: bool) -> None:
    if wanted:
        typer.echo(f"{context.info_name} {__version__}")
        raise typer.Exit


def application(name: str, help: str) -> typer.Typer:
    """Return a typer application with the options ``--version`` and ``--debug``."""
    app = typer.Typer(
        name=name,
        help=help,
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",  # rewrap paragraphs of docstrings
    )

    @app.callback()
    def options(
        version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version.", is_eager=True, callback=_tell_version
            ),
        ] = False,
        debug: Annotated[
            bool, typer.Option("--debug", help="Show the traceback of any error.")
        ] = False,
    ) -> None:
        # run() removes --debug from the arguments; here it is for the help text.
        pass

    options.__doc__ = help
    return app


def run(
    app: typer.Typer, arguments: Sequence[str] | None = None, *, install: str = "daskdl"
) -> int:
    """Run a command line and return its exit code.

    A :class:`~daskdl.errors.DaskdlError` prints one line on standard error and ends with its exit
    code. ``--debug``, anywhere among the arguments, also shows the traceback. Messages begin with
    the name of the app, see :func:`application`. Arguments are by default the process's;
    ``install`` is the argument of pip install in the advice for a missing package.
    """
    name = str(app.info.name)
    rest, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    try:
        with terminated_as_exit(TERMINATED), interrupts_not_lost():
            typer.main.get_command(app).main(args=rest, prog_name=name)
    except (SystemExit, KeyboardInterrupt) as end:  # typer's end, or a second Ctrl-C
        code = getattr(end, "code", INTERRUPTED)
        if code in ENDINGS:
            print(f"{name}: {ENDINGS[code]}", file=sys.stderr)
        return code if isinstance(code, int) else INTERNAL if code else 0
    except Exception as error:
        code, sentence, unexpected = _sentence(error, install)
        if debug:
            import traceback

            traceback.print_exc()
        elif unexpected:
            sentence += f"; `{name} --debug ...` shows where"
        print(f"{name}: {sentence}", file=sys.stderr)
        return code
    return 0


class _Help(argparse.RawDescriptionHelpFormatter):
    def _get_help_string(self, action: argparse.Action) -> str | None:
        shown = action.default not in (None, False, argparse.SUPPRESS)
        return f"{action.help} (default: %(default)s)" if shown else action.help


def argument_parser(description: str | None, epilog: str | None = None) -> argparse.ArgumentParser:
    """Return a parser of a script's arguments; its help keeps lines, and shows defaults."""
    return argparse.ArgumentParser(description=description, epilog=epilog, formatter_class=_Help)


def natural(text: str, least: int = 0) -> int:
    """Return a whole number of at least 0, as a type for arguments of scripts."""
    if not text.isdecimal() or int(text) < least:
        sentence = f"expected a whole number of at least {least}, found {text!r}"
        raise argparse.ArgumentTypeError(sentence)
    return int(text)


positive = functools.partial(natural, least=1)


def output(text: str) -> Path:
    """Return the path of a file to be written, as a type for arguments of scripts."""
    if not Path(text).absolute().parent.is_dir():  # better now than after hours
        sentence = f"expected a file in an existing folder, found {text!r}; make the folder first"
        raise argparse.ArgumentTypeError(sentence)
    return Path(text)


def script(main: Callable[[], Any]) -> None:
    """Run the main function of a script; report a user's mistakes in one line, as :func:`run`.

    A :class:`~daskdl.errors.DaskdlError`, or a file that cannot be used, prints one line on
    standard error; exit codes are as in :func:`run`. Other errors are raised, and with the
    environment variable ``DASKDL_TRACEBACK`` all are.
    """
    name = Path(sys.argv[0]).name
    try:
        with terminated_as_exit(TERMINATED), interrupts_not_lost():
            main()
    except SystemExit as end:
        if end.code == TERMINATED:
            print(f"{name}: {ENDINGS[TERMINATED]}", file=sys.stderr)
        raise
    except KeyboardInterrupt as interrupt:
        if not (interrupt.args or os.environ.get(TRACEBACK)):  # a fit's has a line of its own
            sys.excepthook = lambda *_: print(f"{name}: {ENDINGS[INTERRUPTED]}", file=sys.stderr)
        raise  # the process ends by the signal, and a shell's loop around it, too
    except Exception as error:
        code, sentence, unexpected = _sentence(error, "daskdl")
        if unexpected or isinstance(error, ModuleNotFoundError) or os.environ.get(TRACEBACK):
            raise
        print(f"{name}: {sentence}", file=sys.stderr)
        sys.exit(code)


def _sentence(error: Exception, install: str) -> tuple[int, str, bool]:
    """Return the exit code, the message, and whether the error was unexpected."""
    if isinstance(error, DaskdlError):
        return error.exit_code, str(error), False
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError) and (error.filename or full):  # a path that cannot be used
        file = isinstance(error, FileExistsError)  # in place of a new folder
        # h5py's own text has lines of addresses.
        strerror = os.strerror(error.errno or 0) if full else error.strerror
        reason = "expected a folder or nothing, found a file" if file else strerror
        return UNREADABLE, f"{error.filename or 'what is written'}: {reason}", False
    if isinstance(error, ModuleNotFoundError):
        sentence = f"expected the package {error.name}, found it not installed"
        return MissingExtraError.exit_code, f"{sentence}; pip install '{install}'", False
    return INTERNAL, f"internal error: {type(error).__name__}: {error}", True


def _without_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the arguments without ``--debug`` before any ``--``, and whether it was there."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, values = arguments[:end], arguments[end:]
    remaining = [argument for argument in options if argument != "--debug"]
    return remaining + values, len(remaining) < end
