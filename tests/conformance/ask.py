"""Translates the oracle's arguments to the client's: the only place where the two ways of naming things meet."""


def _type(t):
    return None if t is None else t.number


def quantize(client, x, scale, zero_point=None, *, output_type=None, precision=None, before_rounding=False,
             block_shape=None, **options):
    return client.quantize(
        x, scale, zero_point, output_type=_type(output_type), precision=_type(precision), block_shape=block_shape or None,
        zero_point_order="before_rounding" if before_rounding else None, **options)


def dequantize(client, x, scale, zero_point=None, *, output_type=None, block_shape=None, **options):
    return client.dequantize(x, scale, zero_point, output_type=_type(output_type), block_shape=block_shape or None, **options)


def dynamic_quantize(client, x, *, output_type=None, scale_type=None, symmetric=None, ignore=False, block_shape=None,
                     **options):
    return client.dynamic_quantize(
        x, output_type=_type(output_type), scale_type=_type(scale_type), block_shape=block_shape or None,
        symmetry="symmetric" if symmetric else None, non_finite="ignore" if ignore else None, **options)
