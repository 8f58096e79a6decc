"""SciPy's functions of functions: what answers for them when the function they are given has nodes in it.

Only names stand here. A module is imported when one of its functions is first called, after SciPy's own.
"""

from compgraph.scipy import answer_by

ANSWERS = {
    "scipy.integrate": {
        "integrate": ("quad", "quad_vec", "solve_ivp", "odeint", "nquad", "dblquad", "tplquad"),
    },
}

NESTED = {"nquad", "dblquad", "tplquad"}  # these ask others, which ask what the function brings

for _module, _places in ANSWERS.items():
    for _place, _names in _places.items():
        for _name in _names:
            answer_by(_module, _name, f"{__name__}.{_place}:{_name}", calling=_name not in NESTED)
