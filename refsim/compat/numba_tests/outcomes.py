"""How each test ended, and the verdict over all of them."""

from __future__ import annotations

from dataclasses import dataclass

ORDER = ("passed", "skipped", "failed")  # what happens later in a test counts if it is worse


@dataclass
class Outcome:
    """End of one test.

    Attributes
    ----------
    state
        ``"passed"``, ``"failed"`` or ``"skipped"``; a test that fails as its authors expect has passed.
    text
        Why it failed or was skipped, as pytest tells it.
    """

    state: str
    text: str


class Outcomes:
    """Outcomes by the test's name, relative to the folder of the tests."""

    def __init__(self) -> None:
        self.of: dict[str, Outcome] = {}

    def add(self, test: str, state: str, text: str) -> None:
        """One more phase of a test ended like this."""
        before = self.of.get(test)
        if before is None or ORDER.index(state) > ORDER.index(before.state):
            self.of[test] = Outcome(state, text)

    def names(self, state: str) -> set[str]:
        """Tests that ended in a state."""
        return {name for name, outcome in self.of.items() if outcome.state == state}
