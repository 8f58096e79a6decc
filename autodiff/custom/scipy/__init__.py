"""SciPy's functions of functions: what answers for them when the function they are given has nodes in it.

Only names stand here. A module is imported when one of its functions is first called, after SciPy's own.
"""

from compgraph.scipy import answer_by

ANSWERS = {
    "scipy.integrate": {
        "integrate": ("quad", "quad_vec", "fixed_quad", "solve_ivp", "odeint"),
    },
}

for _module, _places in ANSWERS.items():
    for _place, _names in _places.items():
        for _name in _names:
            answer_by(_module, _name, f"{__name__}.{_place}:{_name}")
