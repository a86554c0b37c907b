"""A conformance kit: anyone's padded loss function, against the objective it means to be.

from gspo.testing import check_objective

report = check_objective(my_loss, "gspo", low=3e-4, high=4e-4)
print(report)
report.assert_ok()
"""

from gspo.testing.check import check_objective
from gspo.testing.report import Finding, Report, Verdict

__all__ = ["Finding", "Report", "Verdict", "check_objective"]
