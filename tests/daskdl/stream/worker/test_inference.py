"""Records become answers; those that cannot be decoded or predicted become dead letters."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import daskdl
from daskdl.errors import DataError, ModelFileError, SettingsError
from daskdl.nn import read_metadata
from daskdl.stream import Limits, ModelFile, Routes
from daskdl.stream.queues.records import Partition, Record
from daskdl.stream.worker.inference import Inference
from daskdl.stream.worker.latency import BatchLimit, Histogram
from daskdl.stream.worker.messages import schema
from daskdl.stream.worker.model_file import ServedModel
from daskdl.stream.worker.orders import Orders, Spec, Work
from daskdl.stream.worker.session import Session
from tests.daskdl.stream.models import LABELS, number_model, text_model, utterances

ROUTES = Routes("routes", "dead")


def records(*values: bytes | None) -> list[Record]:
    return [Record(Partition("calls", 3), 7 + i, 1000, b"k", v) for i, v in enumerate(values)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return ServedModel(text_model(tmp_path_factory.mktemp("models")))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    return ServedModel(number_model(tmp_path_factory.mktemp("models")))


def test_an_answer_has_label_probability_name_and_sha256(texts):
    outputs, dead = Inference(bytes.decode, ROUTES)(texts, records(*utterances(20)))
    assert dead == 0
    for output in outputs:
        answer = json.loads(output.value)
        assert answer["label"] in LABELS
        assert 1 / 3 <= answer["probability"] <= 1
        assert (answer["model"], answer["sha256"]) == ("first", texts.sha256)
    assert [o.record.place for o in outputs] == [f"calls/3/{i}" for i in range(7, 27)]


def test_an_encoder_with_its_tokenizer_answers_texts(tmp_path):
    pytest.importorskip("tokenizers")
    from daskdl import text
    from tests.daskdl.text.folders import TEXTS, write_folder

    model = text.load(write_folder(tmp_path / "model"), "classify", labels=["dry", "wet"])
    daskdl.save(model.network, tmp_path / "a.safetensors", model.metadata())
    served = ServedModel(ModelFile.read(tmp_path / "a.safetensors"))
    served.try_on("rain")
    outputs, dead = Inference(bytes.decode, ROUTES)(
        served, records(*(one.encode() for one in TEXTS))
    )
    assert dead == 0
    scores = model(TEXTS)
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    answers = [json.loads(output.value) for output in outputs]
    assert [answer["label"] for answer in answers] == model.classify(TEXTS)
    probabilities = [answer["probability"] for answer in answers]
    np.testing.assert_allclose(probabilities, shares.max(1), atol=1e-5)


def test_a_quantized_model_answers_nearly_the_same(texts, tmp_path):
    """Its file has the texts' vocabulary, and its layers behind the encoder are int8."""
    file = text_model(tmp_path)
    path = tmp_path / "first.safetensors"
    words = np.random.default_rng(0).integers(1, 20, (40, 16))
    small = daskdl.quantize(daskdl.load(path), words, ends=True, tried=0)
    assert any(type(module).__name__.startswith("Int8") for _, module in small.modules())
    daskdl.save(small, path, read_metadata(path))
    assert ModelFile.read(path).sha256 != file.sha256
    served, rows = ServedModel(ModelFile.read(path)), records(*utterances(20))
    answers = [
        [
            json.loads(o.value)["probability"]
            for o in Inference(bytes.decode, ROUTES)(model, rows)[0]
        ]
        for model in (texts, served)
    ]
    np.testing.assert_allclose(*answers, atol=0.01)
    assert answers[0] != answers[1]


def test_answers_do_not_depend_on_the_batch(texts):
    infer, all_of = Inference(bytes.decode, ROUTES), records(*utterances(50))
    together = [o.value for o in infer(texts, all_of)[0]]
    alone = [infer(texts, [r])[0][0].value for r in all_of]
    assert [json.loads(v)["label"] for v in together] == [json.loads(v)["label"] for v in alone]


def test_poison_is_set_aside_with_reason_place_and_bytes(texts):
    good = utterances(5)
    messages = records(good[0], b"\xff\xfe", good[1], None, good[2])
    outputs, dead = Inference(bytes.decode, ROUTES)(texts, messages)
    assert dead == 2
    assert [o.topic for o in outputs] == ["routes", "dead", "routes", "dead", "routes"]
    headers = dict(outputs[1].headers)
    assert outputs[1].value == b"\xff\xfe"
    assert headers["reason"].startswith(b"decode: UnicodeDecodeError")
    where = headers["topic"], headers["partition"], headers["offset"], headers["key"]
    assert where == (b"calls", b"3", b"8", b"k")
    assert b"without a value" in dict(outputs[3].headers)["reason"]


def test_one_message_that_cannot_be_predicted_spoils_no_other(numbers):
    values = [b"[1, 2, 3]", b"[1, 2]", b"[0.5, 0, 1]", b"[1, NaN, 3]", b'["a", 1, 2]']
    nested = [b"[[1, 2, 3]]", b"[[1, 2, 3], [4, 5, 6]]"]
    outputs, dead = Inference(json.loads, ROUTES)(numbers, records(*values, *nested))
    assert [o.topic for o in outputs] == ["routes", "dead", "routes", *["dead"] * 4]
    assert dead == 5
    for value in nested:  # alone in a batch they are dead letters too
        assert Inference(json.loads, ROUTES)(numbers, records(value))[1] == 1
    assert b"finite" in dict(outputs[3].headers)["reason"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
PAYLOADS = st.binary(max_size=12) | JSON.map(lambda value: json.dumps(value).encode())


ROW = st.lists(st.integers(-9, 9), min_size=3, max_size=3)
ROWS = (ROW | st.lists(ROW, max_size=2)).map(lambda value: json.dumps(value).encode())


@given(st.lists(PAYLOADS | ROWS, max_size=5))
def test_any_payload_is_answered_or_set_aside_and_stops_no_other(numbers, values):
    good = b"[1, 2, 3]"
    outputs, dead = Inference(json.loads, ROUTES)(numbers, records(good, *values, good))
    assert [o.record.value for o in outputs] == [good, *values, good]
    assert (outputs[0].topic, outputs[-1].topic) == ("routes", "routes")
    assert outputs[0].value == outputs[-1].value
    assert dead == sum(o.topic == "dead" for o in outputs)
    for output in outputs[1:-1]:
        alone, _ = Inference(json.loads, ROUTES)(numbers, records(output.record.value))
        assert alone[0].topic == output.topic


def test_routes_by_class_and_probability():
    routes = Routes("rest", "dead", {"money": "specialist-money"}, 0.5, "human")
    assert routes.of("money", 0.9) == "specialist-money"
    assert routes.of("money", 0.4) == "human"
    assert routes.of("sports", 0.9) == "rest"
    assert routes.topics() == ["rest", "dead", "specialist-money", "human"]


def test_echo_has_the_message(texts):
    messages = records('w1 "w2" ä'.encode())
    answer = json.loads(Inference(bytes.decode, ROUTES, echo=True)(texts, messages)[0][0].value)
    assert answer["message"] == 'w1 "w2" ä'


def test_schemas():
    assert schema("json:call.text")(b'{"call": {"text": "hello"}}') == "hello"
    assert schema("text")("ä".encode()) == "ä"
    assert schema("numbers")(b"[1, 2]") == [1, 2]
    assert schema(len) is len
    assert pickle.loads(pickle.dumps(schema("json:x")))(b'{"x": 7}') == 7
    for value in (b'{"call": 1}', b'{"call": {}}'):
        with pytest.raises(DataError, match="a JSON object with the field call"):
            schema("json:call.text")(value)
    for wrong in ("words", "json:", "no_such_module:f"):
        with pytest.raises(SettingsError, match="schema: expected"):
            schema(wrong)


def test_a_file_that_is_no_model_and_one_that_does_not_fit(tmp_path):
    with pytest.raises(ModelFileError, match=r"^broken: not a whole"):
        ServedModel(ModelFile("broken", b"no safetensors"))
    with pytest.raises(ModelFileError, match="expected a model for messages such as"):
        ServedModel(number_model(tmp_path, 5)).try_on([1.0, 2.0])


@pytest.mark.parametrize(("microseconds", "expected"), [(10.0, 1024), (500.0, 100), (1e5, 1)])
def test_batches_take_the_wanted_time(microseconds, expected):
    limit = BatchLimit(1024, 0.05)
    for _ in range(12):
        limit.worked(limit.limit, limit.limit * microseconds * 1e-6)
    assert limit.limit == pytest.approx(expected, rel=0.1)


def test_small_batches_do_not_change_the_limit():
    limit = BatchLimit(1024, 0.05)
    for _ in range(10):
        limit.worked(limit.limit, limit.limit * 1e-5)
    limit.worked(1, 0.04)
    limit.worked(0, 0.04)
    assert limit.limit == 1024


def test_percentiles_are_right_to_a_tenth():
    values = np.random.default_rng(0).lognormal(3, 1.5, 10_000)
    parts = Histogram(), Histogram()
    parts[0].add(values[:3000])
    parts[1].add(values[3000:])
    whole = Histogram([*parts[0].sparse(), *parts[1].sparse()])
    rounded = np.array(whole.percentiles(50, 95, 99))
    exact = np.percentile(values, [50, 95, 99])
    assert (rounded >= exact * 0.999).all()
    assert (rounded <= exact * 1.11).all()


def test_no_latency_at_all():
    assert np.isnan(Histogram().percentiles(50)).all()
    early = Histogram()
    early.add(np.array([-5.0, 1e12]))  # a clock that is behind, and one far ahead
    assert early.counts[0] == early.counts[-1] == 1


def session(lease: float) -> Session:
    return Session(Spec(Work("run", None, None, None, Limits(lease=lease)), 1, 0, "tcp://a:1"))


@pytest.mark.timeout(20)
def test_a_session_without_orders_ends_when_its_lease_is_over():
    assert session(0.05).run()["state"] == "expired"


def test_orders_within_the_lease_keep_a_session():
    active = session(60.0)
    active.order(Orders(1, (), "sha", stop=False, within=1.0))
    assert not active._given_up()
