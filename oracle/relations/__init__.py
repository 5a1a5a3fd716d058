"""Relations: what must hold between runs of one implementation, bit for bit. One file per family."""

from oracle.relations.relation import RELATIONS, Relation, difference, relation, relations_of

__all__ = ["RELATIONS", "Relation", "difference", "relation", "relations_of"]
