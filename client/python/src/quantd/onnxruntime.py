"""ONNX Runtime's static quantization with quantd's calibration, in this process.

    from quantd.onnxruntime import quantize_static

    quantize_static("model.onnx", "model.int8.onnx", reader, method="mse", activation_type=QuantType.QUInt8)

onnxruntime keeps the values of all batches until they are counted. This module keeps one state of some kB per tensor, however many
values it has seen: batches may be endless, come in any order, and be shared among workers whose states are merged afterwards.

Needs the packages onnx, onnxruntime and quantd-core.
"""

import inspect
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Union

import numpy as np
import onnx
from onnxruntime import quantization
from onnxruntime.quantization import calibrate as _calibrate

from .functions import in_process

_OUTPUT_TYPES = {
    quantization.QuantType.QInt8: "int8",
    quantization.QuantType.QUInt8: "uint8",
    quantization.QuantType.QInt16: "int16",
    quantization.QuantType.QUInt16: "uint16",
    quantization.QuantType.QInt4: "int4",
    quantization.QuantType.QUInt4: "uint4",
}


if TYPE_CHECKING:  # onnxruntime has no types

    class _Base:
        def __init__(self, *arguments: Any, **options: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...
else:
    _Base = _calibrate.CalibraterBase


class Calibrater(_Base):
    """A calibrater of onnxruntime.quantization that keeps only a calibration state for each tensor.

    Parameters
    ----------
    model_path : str or Path
        The ONNX model.
    op_types_to_calibrate : sequence of str, optional
        Operators whose inputs and outputs are calibrated; by default all.
    augmented_model_path : str, optional
        Where to write the model whose outputs are those tensors.
    symmetric : bool, optional
        Whether ranges are centred on zero.
    use_external_data_format : bool, optional
        For models of 2 GiB and more.
    method, output_type, percentile, non_finite
        As in quantd.calibrate.
    """

    def __init__(
        self,
        model_path: Union[str, Path],
        op_types_to_calibrate: Optional[Sequence[str]] = None,
        augmented_model_path: str = "augmented_model.onnx",
        symmetric: bool = False,
        use_external_data_format: bool = False,
        *,
        method: str = "min_max",
        output_type: Any = "uint8",
        percentile: Optional[float] = None,
        non_finite: Optional[str] = None,
    ):
        super().__init__(
            model_path,
            op_types_to_calibrate=op_types_to_calibrate,
            augmented_model_path=augmented_model_path,
            symmetric=symmetric,
            use_external_data_format=use_external_data_format,
        )
        self._engine = in_process()
        self._symmetry = "symmetric" if symmetric else "asymmetric"
        self._method, self._output_type, self._percentile = method, output_type, percentile
        # Everything before the result: counting, with a method that does not search.
        self._counting = dict(method="min_max" if method == "min_max" else "percentile", non_finite=non_finite, return_state=True)
        self._dtypes: Dict[str, np.dtype] = {}
        self.states: Dict[str, bytes] = {}

    def augment_graph(self) -> None:
        """Make the calibrated tensors outputs, and write the model."""
        tensors, value_infos = self.select_tensors_to_calibrate(self.model)
        for name in sorted(tensors):
            self._dtypes[name] = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value_infos[name].type.tensor_type.elem_type))
        known = {value.name for value in (*self.model.graph.output, *self.model.graph.input)}
        self.model.graph.output.extend(value_infos[name] for name in sorted(tensors - known))
        onnx.save(self.model, self.augmented_model_path, save_as_external_data=self.use_external_data_format)

    def collect_data(self, data_reader: Any) -> None:
        """Count the values of the reader's batches. May be called again, for more.

        Parameters
        ----------
        data_reader : onnxruntime.quantization.CalibrationDataReader
            Its get_next returns a batch, or None after the last.
        """
        outputs = [output.name for output in self.infer_session.get_outputs()]
        wanted = [name for name in outputs if name in self._dtypes]
        batches = 0
        while batch := data_reader.get_next():
            batches += 1
            found = dict(zip(wanted, self.infer_session.run(wanted, batch)))
            found.update((name, batch[name]) for name in self._dtypes if name not in found)  # the model's inputs
            for name, value in found.items():
                self._add(name, value, self.states.get(name))
        if not batches and not self.states:
            raise ValueError("no data was collected: the reader gave no batch")

    def add_states(self, states: Mapping[str, bytes]) -> None:
        """Add the values that another calibrater of the same model has seen.

        Parameters
        ----------
        states : mapping of str to bytes
            Its `states`.
        """
        for name, state in states.items():
            self._add(name, (), state, self.states.get(name))

    def _add(self, name: str, x: Any, *states: Optional[bytes]) -> None:
        known = [state for state in states if state is not None]
        self.states[name] = self._engine.calibrate(x, states=known, **self._counting).state

    def compute_data(self) -> Any:
        """The range of each tensor.

        Returns
        -------
        onnxruntime.quantization.calibrate.TensorsData
            Of the kind of MinMax, which contains only ranges.
        """
        ranges = {}
        for name, state in self.states.items():
            found = self._engine.calibrate(
                states=state, method=self._method, output_type=self._output_type, symmetry=self._symmetry, percentile=self._percentile
            )
            low, high = found.range.astype(self._dtypes.get(name, np.float32))
            ranges[name] = _calibrate.TensorData(lowest=np.array(low), highest=np.array(high))
        return _calibrate.TensorsData(quantization.CalibrationMethod.MinMax, ranges)


def quantize_static(
    model_input: Any,
    model_output: Union[str, Path],
    calibration_data_reader: Any,
    *,
    method: str = "min_max",
    percentile: Optional[float] = None,
    non_finite: Optional[str] = None,
    states: Optional[Mapping[str, bytes]] = None,
    **options: Any,
) -> Dict[str, bytes]:
    """onnxruntime.quantization.quantize_static with quantd's calibration.

    Parameters
    ----------
    model_input : str, Path or onnx.ModelProto
        The model.
    model_output : str or Path
        Where to write the quantized model.
    calibration_data_reader : onnxruntime.quantization.CalibrationDataReader or None
        The batches; None if `states` contain everything.
    method, percentile, non_finite
        As in quantd.calibrate.
    states : mapping of str to bytes, optional
        The states of other workers, or of an earlier call, to be added.
    **options
        All other arguments of onnxruntime's function, such as activation_type and extra_options, except those about calibration.

    Returns
    -------
    dict of str to bytes
        The states of all values: the `states` of another call, with another method or output type.
    """
    if "calibration_cache_path" not in inspect.signature(quantization.quantize_static).parameters:
        message = "quantize_static needs an onnxruntime whose quantize_static has calibration_cache_path, such as 1.31"
        raise ImportError(message, name="onnxruntime")
    extra = options.get("extra_options") or {}
    refused = {"calibrate_method", "calibration_cache_path"} & set(options) | {"SmoothQuant"} & {n for n in extra if extra[n]}
    if refused:
        raise TypeError(f"{' and '.join(sorted(refused))} can't be given: quantd calibrates, on the model as it is")
    activation_type = options.get("activation_type", quantization.QuantType.QInt8)
    if activation_type not in _OUTPUT_TYPES:
        raise ValueError(f"activation_type is {activation_type}; one of {', '.join(map(str, _OUTPUT_TYPES))}")
    with tempfile.TemporaryDirectory(prefix="quantd.") as folder:
        path = model_input
        if isinstance(model_input, onnx.ModelProto):
            path = Path(folder, "model.onnx")
            onnx.save(model_input, path, save_as_external_data=True)
            model_input = path
        calibrater = Calibrater(
            str(path),
            options.get("op_types_to_quantize") or _operators(),
            str(Path(folder, "augmented.onnx")),
            symmetric=bool(extra.get("ActivationSymmetric") or extra.get("CalibTensorRangeSymmetric")),
            use_external_data_format=options.get("use_external_data_format", False),
            method=method,
            output_type=_OUTPUT_TYPES[activation_type],
            percentile=percentile,
            non_finite=non_finite,
        )
        calibrater.augment_graph()
        calibrater.execution_providers = options.get("calibration_providers") or calibrater.execution_providers
        if calibration_data_reader is not None:
            calibrater.create_inference_session()
            calibrater.collect_data(calibration_data_reader)
        calibrater.add_states(states or {})
        cache = Path(folder, "ranges.json")
        _calibrate.save_tensors_data(calibrater.compute_data(), cache)
        quantization.quantize_static(model_input, model_output, None, calibration_cache_path=cache, **options)
    return calibrater.states


def _operators() -> Sequence[str]:
    """The operators that onnxruntime quantizes by default."""
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    return [*QLinearOpsRegistry, *QDQRegistry]
