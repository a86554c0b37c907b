"""The checker of every annotation while the tests run. An int is a float here, as for a type
checker."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
