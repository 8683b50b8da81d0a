"""The connections of a rank with the others, for the life of its pipeline."""

from typing import NamedTuple

from paci.distributed.control import ControlChannel
from paci.distributed.handshake import clock_offset
from paci.distributed.inbox import Inbox
from paci.distributed.links import Links
from paci.distributed.rank_group import RankGroup


class Connections(NamedTuple):
    """The connections of one rank. Every rank opens them, and closes them, in its main thread."""

    ranks: RankGroup  # all of them together
    links: Links  # to those of the neighbouring stages
    control: ControlChannel  # failures and interruptions, to and from every rank
    inbox: Inbox  # whatever comes, from whomever
    clock_offset: float  # seconds from this rank's clock to the one that all ranks share

    @classmethod
    def open(cls, ranks: RankGroup, links: Links) -> "Connections":
        """Warm the links up, watch the neighbours, and agree on a clock."""
        links.warm_up()
        offset = clock_offset(ranks)
        inbox = Inbox()
        links.watch(inbox.put)
        return cls(ranks, links, ControlChannel(inbox.put), inbox, offset)

    def close(self) -> None:
        """Give everything back, once the control channel has ended."""
        self.control.join()
        self.links.close()
        self.ranks.close()
