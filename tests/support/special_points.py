"""A regular point of each ufunc of ``scipy.special``: names of arguments and their values.

``?`` after a name: no derivative with respect to this argument is known. ``!``: SciPy accepts integers only.
"""

from __future__ import annotations

# fmt: off
GAMMA = """
beta a=1.3 b=2.2
betainc a=1.5 b=2.5 x=0.3
betaincc a=1.5 b=2.5 x=0.3
betainccinv a=1.5 b=2.5 y=0.3
betaincinv a=1.5 b=2.5 y=0.3
betaln a=1.3 b=2.2
binom n=4.3 k=1.7
dawsn x=0.7
digamma x=1.7
erf x=0.7
erfc x=0.7
erfcinv x=0.6
erfcx x=0.7
erfi x=0.7
erfinv x=0.4
gamma x=2.3
gammainc a=1.5 x=1.2
gammaincc a=1.5 x=1.2
gammainccinv a=1.5 y=0.3
gammaincinv a=1.5 y=0.3
gammaln x=2.3
gammasgn x=-0.5
log_ndtr x=-0.8
loggamma x=2.3
ndtr x=0.4
ndtri y=0.3
ndtri_exp x=-0.8
poch z=1.4 m=2.3
psi x=1.7
rgamma x=2.3
voigt_profile x=0.7 sigma=1.2 gamma=0.4
wofz z=0.7+0.3j
zetac x=2.5
"""
ELEMENTARY = """
boxcox x=1.7 lmbda=0.6
boxcox1p x=1.7 lmbda=0.6
cbrt x=1.7
cosdg x=35.0
cosm1 x=0.7
cotdg x=35.0
entr x=0.7
exp1 x=0.7
exp10 x=0.7
exp2 x=0.7
expi x=0.7
expit x=0.7
expm1 x=0.7
expn n?=3 x=0.7
exprel x=0.7
fresnel x=0.7
huber delta=0.8 r=1.5
inv_boxcox y=0.7 lmbda=0.6
inv_boxcox1p y=0.7 lmbda=0.6
kl_div x=0.7 y=1.3
log1p x=0.7
log_expit x=0.7
logit x=0.3
modfresnelm x=0.7
modfresnelp x=0.7
owens_t h=0.7 a=1.3
powm1 x=1.7 y=0.6
pseudo_huber delta=0.8 r=1.5
radian d=35.0 m=20.0 s=10.0
rel_entr x=0.7 y=1.3
round x=1.3
shichi x=0.7
sici x=0.7
sindg x=35.0
spence x=0.7
tandg x=35.0
tklmbda x=0.7 lmbda=0.4
wrightomega x=0.7
xlog1py x=0.7 y=1.3
xlogy x=0.7 y=1.3
"""
BESSEL = """
airy x=0.7
airye x=0.7
bei x=1.7
beip x=1.7
ber x=1.7
berp x=1.7
besselpoly a=0.7 lmb?=1.2 nu?=1.5
hankel1 v?=1.3 x=1.7
hankel1e v?=1.3 x=1.7
hankel2 v?=1.3 x=1.7
hankel2e v?=1.3 x=1.7
i0 x=1.7
i0e x=1.7
i1 x=1.7
i1e x=1.7
it2i0k0 x=1.7
it2j0y0 x=1.7
it2struve0 x=1.7
itairy x=0.7
iti0k0 x=1.7
itj0y0 x=1.7
itmodstruve0 x=1.7
itstruve0 x=1.7
iv v?=1.3 x=1.7
ive v?=1.3 x=1.7
j0 x=1.7
j1 x=1.7
jn v?=1.3 x=1.7
jv v?=1.3 x=1.7
jve v?=1.3 x=1.7
k0 x=1.7
k0e x=1.7
k1 x=1.7
k1e x=1.7
kei x=1.7
keip x=1.7
kelvin x=1.7
ker x=1.7
kerp x=1.7
kn n?=2 x=1.7
kv v?=1.3 x=1.7
kve v?=1.3 x=1.7
log_wright_bessel a?=1.2 b?=1.6 x=0.7
modstruve v?=1.3 x=1.7
struve v?=1.3 x=1.7
wright_bessel a?=1.2 b?=1.6 x=0.7
y0 x=1.7
y1 x=1.7
yn n?=2 x=1.7
yv v?=1.3 x=1.7
yve v?=1.3 x=1.7
"""
ELLIPTIC = """
agm a=1.3 b=2.6
ellipe m=0.4
ellipeinc phi=2.3 m=0.4
ellipj u=2.3 m=0.4
ellipk m=0.4
ellipkinc phi=2.3 m=0.4
ellipkm1 p=0.4
elliprc x=1.3 y=2.6
elliprd x=1.3 y=2.6 z=0.7
elliprf x=1.3 y=2.6 z=0.7
elliprg x=1.3 y=2.6 z=0.7
elliprj x=1.3 y=2.6 z=0.7 p=1.9
"""
POLYNOMIALS = """
eval_chebyc n?=3 x=0.3
eval_chebys n?=3 x=0.3
eval_chebyt n?=3 x=0.3
eval_chebyu n?=3 x=0.3
eval_gegenbauer n?=3 alpha?=1.2 x=0.3
eval_genlaguerre n?=3 alpha?=1.2 x=0.3
eval_hermite n!=3 x=0.3
eval_hermitenorm n!=3 x=0.3
eval_jacobi n?=3 alpha?=1.2 beta?=0.7 x=0.3
eval_laguerre n?=3 x=0.3
eval_legendre n?=3 x=0.3
eval_sh_chebyt n?=3 x=0.3
eval_sh_chebyu n?=3 x=0.3
eval_sh_jacobi n?=3 p?=2.2 q?=1.7 x=0.3
eval_sh_legendre n?=3 x=0.3
hyp0f1 v?=1.3 z=0.7
hyp1f1 a?=1.3 b?=2.2 x=0.7
hyp2f1 a?=0.6 b?=1.3 c?=2.2 z=0.4
hyperu a?=1.3 b?=2.2 x=0.7
lpmv m?=1 v?=2.5 x=0.3
"""
STATISTICS = """
bdtr k?=2 n?=5 p=0.3
bdtrc k?=2 n?=5 p=0.3
bdtri k?=2 n?=5 y=0.3
bdtrik y?=0.3 n?=5 p?=0.4
bdtrin k?=2 y?=0.3 p?=0.4
btdtria p?=0.3 b?=1.7 x?=0.4
btdtrib a?=1.7 p?=0.3 x?=0.4
chdtr v=2.5 x=1.7
chdtrc v=2.5 x=1.7
chdtri v=2.5 p=0.3
chdtriv p?=0.3 x?=1.7
chndtr x=1.7 df?=2.5 nc=0.8
chndtridf x?=1.7 p?=0.3 nc?=0.8
chndtrinc x=1.7 df?=2.5 p=0.3
chndtrix p=0.3 df?=2.5 nc=0.8
fdtr dfn=3.5 dfd=4.5 x=0.8
fdtrc dfn=3.5 dfd=4.5 x=0.8
fdtri dfn=3.5 dfd=4.5 p=0.3
fdtridfd dfn?=3.5 p?=0.4 x?=0.8
gdtr a=1.2 b=2.5 x=1.7
gdtrc a=1.2 b=2.5 x=1.7
gdtria p=0.3 b=2.5 x=1.7
gdtrib a?=1.2 p?=0.3 x?=1.7
gdtrix a=1.2 b=2.5 p=0.3
kolmogi p=0.6
kolmogorov x=0.8
nbdtr k?=2 n?=5 p=0.3
nbdtrc k?=2 n?=5 p=0.3
nbdtri k?=2 n?=5 y=0.3
nbdtrik y?=0.3 n?=5 p?=0.4
nbdtrin k?=2 y?=0.3 p?=0.4
ncfdtr dfn?=3.5 dfd?=4.5 nc=0.8 f=0.9
ncfdtri dfn?=3.5 dfd?=4.5 nc=0.8 p=0.3
ncfdtridfd dfn?=3.5 p?=0.3 nc?=0.8 f?=0.9
ncfdtridfn p?=0.3 dfd?=4.5 nc?=0.8 f?=0.9
ncfdtrinc dfn?=3.5 dfd?=4.5 p?=0.3 f?=0.9
nctdtr df?=3.5 nc=0.8 t=1.3
nctdtridf p?=0.6 nc?=0.8 t?=1.3
nctdtrinc df?=3.5 p=0.3 t=1.3
nctdtrit df?=3.5 nc=0.8 p=0.3
nrdtrimn p=0.3 std=1.2 x=0.7
nrdtrisd mn=0.4 p=0.7 x=1.3
pdtr k?=2 m=1.7
pdtrc k?=2 m=1.7
pdtri k?=2 y=0.3
pdtrik p?=0.3 m?=1.7
smirnov n?=5 d=0.33
smirnovi n?=5 p=0.3
stdtr df=2.5 t=0.7
stdtridf p?=0.7 t?=0.7
stdtrit df=2.5 p=0.3
"""
WAVES = """
mathieu_a m?=2 q?=1.5
mathieu_b m?=2 q?=1.5
mathieu_cem m?=2 q?=1.5 x=40.0
mathieu_modcem1 m?=2 q?=1.5 x=0.4
mathieu_modcem2 m?=2 q?=1.5 x=0.4
mathieu_modsem1 m?=2 q?=1.5 x=0.4
mathieu_modsem2 m?=2 q?=1.5 x=0.4
mathieu_sem m?=2 q?=1.5 x=40.0
obl_ang1 m?=1 n?=2 c?=1.5 x=0.3
obl_ang1_cv m?=1 n?=2 c?=1.5 cv?=5.015885665256057 x=0.3
obl_cv m?=1 n?=2 c?=1.5
obl_rad1 m?=1 n?=2 c?=1.5 x=0.4
obl_rad1_cv m?=1 n?=2 c?=1.5 cv?=5.015885665256057 x=0.4
obl_rad2 m?=1 n?=2 c?=1.5 x?=0.4
obl_rad2_cv m?=1 n?=2 c?=1.5 cv?=5.015885665256057 x?=0.4
pbdv v?=1.3 x=0.7
pbvv v?=1.3 x=0.7
pbwa a?=1.3 x=0.7
pro_ang1 m?=1 n?=2 c?=1.5 x=0.3
pro_ang1_cv m?=1 n?=2 c?=1.5 cv?=6.9447848136442785 x=0.3
pro_cv m?=1 n?=2 c?=1.5
pro_rad1 m?=1 n?=2 c?=1.5 x=1.4
pro_rad1_cv m?=1 n?=2 c?=1.5 cv?=6.9447848136442785 x=1.4
pro_rad2 m?=1 n?=2 c?=1.5 x?=1.4
pro_rad2_cv m?=1 n?=2 c?=1.5 cv?=6.9447848136442785 x?=1.4
"""
# fmt: on


def _read(lines: str) -> dict[str, dict[str, int | float | complex]]:
    """Parse the arguments of each ufunc; names include the signs."""
    return {
        name: {argument.split("=")[0]: _number(argument.split("=")[1]) for argument in arguments}
        for name, *arguments in map(str.split, lines.strip().split("\n"))
    }


def _number(text: str) -> int | float | complex:
    return complex(text) if "j" in text else float(text) if "." in text else int(text)


POINTS = _read("".join([GAMMA, ELEMENTARY, BESSEL, ELLIPTIC, POLYNOMIALS, STATISTICS, WAVES]).replace("\n\n", "\n"))
