"""A user's module that cannot be imported."""

import a_package_that_nobody_has

model = a_package_that_nobody_has.model
