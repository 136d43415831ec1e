"""ONNX files as graphs: parameters, layouts, refused files, and ONNX's own tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import daskdl
from ci import onnx_page
from daskdl import SampleSet, Trainer, nn
from daskdl.errors import ModelFileError
from daskdl.interop import onnx as interop
from daskdl.interop.onnx import load
from daskdl.interop.onnx.reader import from_proto
from daskdl.nn.core.state import drawing
from daskdl.optim import SGD
from daskdl.tensor import no_grad
from tests.daskdl.gradients import normal
from tests.daskdl.interop.onnx.models import file_of, picture_model


def reference(model, x):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(model).run(None, {"x": x})[0]


def test_weights_become_parameters_and_statistics_buffers():
    graph = from_proto(picture_model(), "m")
    shapes = {name: p.shape for name, p in graph.named_parameters()}
    assert shapes == {
        "conv.weight": (4, 3, 3, 2),  # channels last
        "conv.bias": (4,),
        "scale": (4,),
        "shift": (4,),
        "head.weight": (3, 64),
        "head.bias": (3,),
    }
    assert sorted(name for name, _ in graph.named_buffers()) == ["mean", "var"]
    assert sorted(graph.constants) == ["rest", "zero"]


@pytest.mark.parametrize("channels_last", [False, True])
def test_it_computes_what_the_reference_computes(channels_last):
    model = picture_model()
    graph = from_proto(model, "m", channels_last=channels_last).eval()
    assert graph.inputs[0][2] == ((None, 8, 8, 2) if channels_last else (None, 2, 8, 8))
    for batch in (1, 5):
        x = normal(batch, 2, 8, 8).astype("f4")
        result = graph(x.transpose(0, 2, 3, 1) if channels_last else x)
        np.testing.assert_allclose(result.data, reference(model, x), rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_it_is_trained_and_saved_as_any_module(tmp_path):
    onnx.save(picture_model(), tmp_path / "m.onnx")
    graph = load(tmp_path / "m.onnx")
    graph.freeze("conv*")
    x = normal(40, 2, 8, 8).astype("f4")
    samples = SampleSet.from_arrays(x=x, y=(x.mean((1, 2, 3)) > 0).astype("i8"), partitions=2)
    weight, mean = graph.state_dict()["conv.weight"], graph.state_dict()["mean"]
    trainer = Trainer(graph, nn.CrossEntropyLoss(), SGD(0.02), seed=0)
    losses = trainer.fit(samples, epochs=4, batch_size=20, progress=False)["loss"]
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(graph.state_dict()["conv.weight"], weight)
    assert np.abs(graph.state_dict()["mean"] - mean).max() > 1e-3  # follows the batches
    daskdl.save(graph, tmp_path / "m.safetensors")
    again = daskdl.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(x), graph.predict(x))


def test_external_data_is_read_next_to_the_file(tmp_path):
    model = picture_model()
    x = normal(2, 2, 8, 8).astype("f4")
    right = reference(model, x)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin",
              size_threshold=0)  # fmt: skip
    np.testing.assert_allclose(load(tmp_path / "m.onnx").eval()(x).data, right, atol=1e-4)
    (tmp_path / "weights.bin").write_bytes(b"short")
    with pytest.raises(ModelFileError, match=r"bytes at \d+ of 'weights.bin', which has 5"):
        load(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/hostname", "a/../../secret.bin", "link"]
)
def test_external_data_is_read_nowhere_else(tmp_path, location):
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "secret.bin").write_bytes(b"0" * 1000)
    (home / "link").symlink_to(tmp_path / "secret.bin")
    model = picture_model()
    tensor = model.graph.initializer[1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    (home / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFileError, match="expected a file in the model's own folder"):
        load(home / "m.onnx")


def one_node(operator, kind=TensorProto.FLOAT, opset=17, domain="", **attributes):
    node = helper.make_node(operator, ["x"], ["y"], domain=domain, **attributes)
    return file_of([node], {"x": (kind, [2, 3])}, opset=opset)


def test_unsupported_operators_and_types_are_named():
    with pytest.raises(
        ModelFileError, match=r"m: operators that are not supported: my:Brew \(node"
    ):
        from_proto(one_node("Brew", domain="my"), "m")
    with pytest.raises(ModelFileError, match="made some: load the file that they were given"):
        from_proto(one_node("BiasGelu", domain="com.microsoft"), "m")
    with pytest.raises(ModelFileError, match="input 'x': numbers of type bfloat16 are not"):
        from_proto(one_node("Relu", TensorProto.BFLOAT16), "m")
    with pytest.raises(ModelFileError, match=r"Cast.to: numbers of type float8e5m2 are not"):
        from_proto(one_node("Cast", to=TensorProto.FLOAT8E5M2), "m")
    with pytest.raises(ModelFileError, match="version 1 to 28 of the operator set, found 99"):
        from_proto(one_node("Relu", opset=99), "m")


def test_names_that_are_attributes_of_a_module_are_changed():
    model = picture_model()
    for node in model.graph.node:
        node.input[:] = ["forward" if n == "conv.bias" else n for n in node.input]
        node.input[:] = ["_joined" if n == "shift" else n for n in node.input]
    for tensor in model.graph.initializer:
        names = {"conv.bias": "forward", "shift": "_joined"}
        tensor.name = names.get(tensor.name, tensor.name)
    graph = from_proto(model, "m").eval()
    assert {"forward_", "weight__joined"} <= {name for name, _ in graph.named_parameters()}
    x = normal(2, 2, 8, 8).astype("f4")
    np.testing.assert_allclose(graph(x).data, reference(model, x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("operator", ["Bernoulli", "RandomNormalLike", "RandomUniformLike"])
def test_draws_follow_the_seed_of_the_run(operator):
    graph, results = from_proto(one_node(operator), "m"), []
    for seed in (1, 1, 2):
        with drawing(seed):
            results.append(graph(np.full((2, 3), 0.5, "f4")).data)
    np.testing.assert_array_equal(results[0], results[1])
    assert (results[0] != results[2]).any()


def test_float16_is_computed_in_float32():
    weight = normal(3, 2).astype(np.float16)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    proto = file_of(nodes, {"x": (TensorProto.FLOAT16, [None, 3])}, constants={"w": weight})
    graph = from_proto(proto, "m")
    x = normal(4, 3).astype(np.float16)
    y = graph(x)
    assert y.dtype == graph.w.dtype == np.float32
    np.testing.assert_allclose(y.data, x.astype("f4") @ weight.astype("f4"), rtol=1e-6)


#: Parts of names of cases whose operators are of text or take gradients inside a graph.
SKIPPED = ("strnorm", "gradient_of")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_node_cases_of_listed_operators_pass_and_the_page_is_true():
    failed = onnx_page.failures(onnx_page.node_cases())
    assert [name for name, reason in failed.items() if reason is None] == []
    text = onnx_page.PAGE.read_text(encoding="utf-8")
    if f"onnx {onnx.__version__} " in text:  # another version has other tests
        assert onnx_page.page(failed) == text


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator", "pytorch-converted"])
def test_stored_cases(kind):
    cases = [c for c in onnx_page.stored_cases(kind) if not any(n in c.name for n in SKIPPED)]
    assert len(cases) >= 15
    for case in cases:
        onnx_page.check(case)


def light():
    import onnx.backend.test

    folder = Path(onnx.backend.test.__file__).parent / "data" / "light"
    return sorted(folder.glob("*.onnx"))


@pytest.mark.parametrize("path", light(), ids=lambda path: path.stem)
@pytest.mark.slow
def test_networks_give_their_stored_outputs(path):
    graph = interop.load(path).eval()
    inputs = []
    for _, dtype, shape in graph.inputs:
        lengths = [n or 1 for n in shape]
        size = int(np.prod(lengths))
        inputs.append((np.arange(size) / size).astype(dtype).reshape(lengths))
    with no_grad():
        result = graph(*inputs).data
    stored = path.with_name(f"{path.stem}_output_0.pb").read_bytes()
    right = numpy_helper.to_array(TensorProto.FromString(stored))
    np.testing.assert_allclose(result, right, rtol=1e-3, atol=1e-7)
