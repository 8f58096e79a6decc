"""SciPy's continuous distributions, each with shape parameters at which all its methods are regular."""

from __future__ import annotations

_TEXT = """
alpha 3.5705; anglit; arcsine; argus 1.0; beta 2.3098 0.6269; betaprime 5.0 6.0; bradford 0.2989; burr 10.5 4.3;
burr12 10.0 4.0; cauchy; chi 7.8; chi2 5.5; cosine; crystalball 2.0 3.0; dgamma 1.1023; dpareto_lognorm 3.0 1.2 1.5
2.0; dweibull 2.0685; erlang 3.0; expon; exponnorm 1.5; exponpow 2.6971; exponweib 2.8924 1.9505; f 29.0 18.0;
fatiguelife 2.0; fisk 3.0858; foldcauchy 4.7165; foldnorm 1.9521; gamma 1.9932; gausshyper 13.7638 3.119 2.5146
5.1812; genexpon 9.1326 16.232 3.282; genextreme -0.1; gengamma 4.4162 3.1193; genhalflogistic 0.7727; genhyperbolic
0.5 1.5 -0.5; geninvgauss 2.3 1.5; genlogistic 0.4119; gennorm 1.2988; halfgennorm 0.6748; genpareto 0.1; gibrat;
gompertz 0.9474; gumbel_l; gumbel_r; halfcauchy; halflogistic; halfnorm; hypsecant; invgamma 4.0669; invgauss 1.3;
invweibull 10.58; irwinhall 10.0; jf_skew_t 8.0 4.0; johnsonsb 4.3173 3.1838; johnsonsu 2.5544 2.2482; kappa4 0.3 0.2;
kappa3 1.0; ksone 10.0; kstwo 10.0; kstwobign; landau; laplace; laplace_asymmetric 2.0; levy; levy_l; levy_stable 1.8
-0.5; loggamma 0.4141; logistic; loglaplace 3.2506; lognorm 0.9537; loguniform 0.5 3.0; lomax 1.8771; maxwell; mielke
10.4 4.6; moyal; nakagami 4.9674; ncf 27.0 27.0 0.4158; nct 14.0 0.2405; ncx2 21.0 1.056; norm; norminvgauss 1.25 0.5;
pareto 2.6217; pearson3 0.1; powerlaw 1.6591; powerlognorm 2.1414 0.4464; powernorm 4.4454; rayleigh; rdist 1.6;
recipinvgauss 0.63; reciprocal 0.5 3.0; rel_breitwigner 36.5452; rice 0.775; semicircular; skewcauchy 0.5; skewnorm
4.0; studentized_range 3.0 10.0; t 2.7434; trapezoid 0.2 0.8; triang 0.1579; truncexpon 4.6908; truncnorm -1.0979
2.7307; truncpareto 1.8 5.3; truncweibull_min 2.5 0.25 1.75; tukeylambda 3.1321; uniform; vonmises 3.9939;
vonmises_line 3.9939; wald; weibull_max 2.8688; weibull_min 1.7866; wrapcauchy 0.3
"""

LAWS: dict[str, tuple[float, ...]] = {
    name: tuple(map(float, shapes)) for name, *shapes in (entry.split() for entry in _TEXT.split(";"))
}

# Shape parameters without a known derivative; all others have one, except for the two sets below.
UNKNOWN: dict[str, tuple[int, ...]] = {
    "gausshyper": (0, 1, 2),
    "genhyperbolic": (0,),
    "geninvgauss": (0,),
    "ncf": (0, 1),
    "nct": (0,),
    "ncx2": (0,),
}

# Densities that are numbers alone: only x, location and scale, of distribution functions, once.
NUMBERS = {"irwinhall", "ksone", "kstwo", "kstwobign", "landau", "levy_stable", "studentized_range"}

# Distribution functions, and their inverses, that SciPy integrates and solves: not by the shape parameters.
INTEGRATED = {"gausshyper", "genhyperbolic", "geninvgauss", "norminvgauss", "vonmises", "vonmises_line", "dpareto_lognorm"}
SOLVED = INTEGRATED | {"argus", "exponnorm", "foldcauchy", "foldnorm", "recipinvgauss", "rel_breitwigner", "gausshyper"}
