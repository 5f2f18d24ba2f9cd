"""Restarts a server by the user's own command, with flags of ours in it, and puts it back as it was."""

import contextlib
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from stepline.errors import SteplineError
from stepline.sources.address import KEY_VARIABLE, is_local, secrets, shown
from stepline.sources.http import Http, Unreachable
from stepline.sources.live.process import find_local
from stepline.sources.live.session import look_at
from stepline.sources.load.level import Address
from stepline.sources.redact import redact

SLOT = "{flags}"
"""Where the flags go in the user's command."""
STOP_S = 30.0
"""To end on SIGTERM: engines finish a step and let go of the GPU; after that they are killed."""
POLL_S = 0.5
TELL_S = 20.0
"""Between words while a server starts, which takes minutes for a large model."""
TAIL_BYTES = 2000


class RestartFailed(SteplineError):
    """The command did not bring the server up; the message says what it last wrote."""


class ServerCommand:
    """The user's command. It is run by `sh`, in a session of its own that outlives this one.

    What listens on the server's port of this machine is stopped first, where that may be done; a server behind a
    tunnel, in a container or on another machine the command itself has to stop.
    """

    def __init__(
        self, address: Address, command: str, output: Path, *, longest_s: float, tell: Callable[[str], None]
    ) -> None:
        """`output` takes what the command writes, at its end; each start may take `longest_s`."""
        self._address, self._command, self._output = address, command, output
        self._longest_s, self._tell = longest_s, tell
        self._child: subprocess.Popen[bytes] | None = None
        self._was_down = False
        """What answers from now on is the new server."""
        self._written = 0
        self._flags: str | None = None
        self.touched = False
        """True once the server that was found was told to stop."""

    def line(self, flags: str) -> str:
        """The command with flags, as it may be shown."""
        return redact(self._with(flags).strip(), secrets(self._address))

    def _with(self, flags: str) -> str:
        return self._command.replace(SLOT, flags)

    def stops(self) -> str:
        """What will be stopped, in words."""
        found = self._listener()
        if found is None:
            return "nothing here that stepline may stop: the command has to"
        with contextlib.suppress(psutil.Error):
            return f"process {found.pid} ({found.name()})"
        return f"process {found.pid}"

    def present(self, flags: str) -> str:
        """What the server that was found was started with in place of these flags; empty where that is not seen."""
        found = self._listener()
        try:
            words = [] if found is None else found.cmdline()
        except psutil.Error:
            words = []
        names = [word.partition("=")[0] for word in shlex.split(flags) if word.startswith("--")]
        given: list[str] = []
        for word, following in zip(words, [*words[1:], "-"], strict=True):
            if word.partition("=")[0] in names:
                given.append(word)
                if "=" not in word and not following.startswith("-"):
                    given.append(following)
        return shlex.join(given)

    def restart(self, flags: str) -> None:
        """Stop the server and start it with these flags; returns once it answers.

        Raises:
            RestartFailed: the command failed, or the server did not answer in time.
            OSError: the output cannot be written.
        """
        self._swap(flags)
        self._await()

    def put_back(self, flags: str) -> None:
        """As `restart`, unless it runs with these flags already; no Ctrl-C comes between stop and start.

        Raises:
            RestartFailed: the server is not as it was, and what to run by hand.
        """
        with _deaf():
            if self._flags != flags or not self._may_run():
                self._swap(flags)
        try:
            self._await()
        except RestartFailed as error:
            raise RestartFailed(
                f"the server is not back ({error}); run by hand: {self.line(flags)}"
            ) from None

    def _swap(self, flags: str) -> None:
        self._tell(f"stopping {self.stops()}")
        self.touched = True
        self._was_down = self._stop()
        self._tell(f"running: {self.line(flags)}")
        self._flags = flags
        with self._output.open("ab") as output:
            self._written = output.tell()
            self._child = subprocess.Popen(  # noqa: S603 - the user's own command, shown before
                ["/bin/sh", "-c", self._with(flags)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={name: value for name, value in os.environ.items() if name != KEY_VARIABLE},
                start_new_session=True,
            )
        # Asked for its end as soon as that comes: an ended child stays a process until then.
        threading.Thread(target=self._child.wait, name="server command", daemon=True).start()

    def _may_run(self) -> bool:
        """The command runs, or ended well and left a server behind."""
        return self._child is not None and self._child.poll() in (None, 0)

    def _listener(self) -> psutil.Process | None:
        """The process that serves here, where it may be stopped."""
        found = find_local(self._address.port) if is_local(self._address) else None
        if found is None or found.forwards:
            return None
        try:
            os.kill(found.pid, 0)
            return psutil.Process(found.pid)
        except (OSError, psutil.Error):
            return None

    def _stop(self) -> bool:
        """End what we started and what listens, with all that they started; False where nothing was there."""
        leaders = [] if (listener := self._listener()) is None else [listener]
        if self._child is not None and self._child.poll() is None:
            with contextlib.suppress(psutil.Error):
                leaders.append(psutil.Process(self._child.pid))
        everything = set(leaders)
        for leader in leaders:
            with contextlib.suppress(psutil.Error):
                everything.update(leader.children(recursive=True))
        for leader in leaders:
            _signal(leader, signal.SIGTERM)
        if self._child is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._child.pid, signal.SIGTERM)
        if not self._gone(everything):
            for process in filter(_alive, everything):
                _signal(process, signal.SIGKILL)
            self._gone(everything)
        return bool(leaders)

    def _gone(self, processes: set[psutil.Process]) -> bool:
        deadline = time.monotonic() + STOP_S
        while any(map(_alive, processes)):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def _await(self) -> None:
        """Until the new server answers: the old one may do so for a while where only the command can stop it."""
        child = self._child
        if child is None:
            raise RestartFailed("the command was not run")
        http = Http(self._address, timeout_s=5.0)
        began, told = time.monotonic(), 0.0
        while (waited := time.monotonic() - began) < self._longest_s:
            code = child.poll()
            if code:
                raise RestartFailed(f"the command ended with {code}: {self._last_words()}")
            ready = _ready(http)
            self._was_down = self._was_down or not ready
            if ready and (self._was_down or code == 0):
                self._tell(f"it answers after {waited:.0f} s")
                return
            if waited > told + TELL_S:
                told = waited
                self._tell(f"still starting ({waited:.0f} s of {self._longest_s:.0f} s)")
            time.sleep(POLL_S)
        raise RestartFailed(f"{shown(self._address)}: no answer within {self._longest_s:.0f} s of its start")

    def _last_words(self) -> str:
        with self._output.open("rb") as output:
            end = output.seek(0, 2)
            output.seek(max(self._written, end - TAIL_BYTES))
            lines = output.read(TAIL_BYTES).decode("utf-8", "replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
        return redact(last, secrets(self._address))[:300]


def _ready(http: Http) -> bool:
    """True when a server is there that is known for one and does not call itself ill."""
    try:
        look_at(http.address)
        return http.get("/health").status < 500  # some have no such route
    except (Unreachable, SteplineError):
        return False


def _alive(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a polite kill, and a terminal that goes away."""


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    before = [signal.signal(number, signal.SIG_IGN) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)


@contextlib.contextmanager
def ends_as_interrupt() -> Iterator[None]:
    """Every polite end comes as KeyboardInterrupt, so that what is to be put back is."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = [signal.signal(number, interrupt) for number in ENDING]
    try:
        yield
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)
