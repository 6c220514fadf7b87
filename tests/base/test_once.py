"""What has an identity is made once, also by threads that ask at once."""

import sys
import threading
import time
from pathlib import Path

import pytest

from cuffi.base.once import once
from cuffi.caffe_files.parameters import message_class


def asked(function, number=8) -> list:
    """What as many threads get, which ask at once."""
    found, barrier = [None] * number, threading.Barrier(number)

    def ask(i):
        barrier.wait()
        found[i] = function()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_get_the_same():
    calls = []

    @once
    def make(name):
        """Its words."""
        calls.append(name)
        time.sleep(0.05)
        return type(name, (), {})

    assert len(set(map(id, asked(lambda: make("A"))))) == 1 and calls == ["A"]
    assert make("B") is make("B") is not make("A") and make.__doc__ == "Its words."


def test_what_failed_is_tried_again():
    answers = iter([ValueError(), 3])

    @once
    def make():
        if isinstance(answer := next(answers), Exception):
            raise answer
        return answer

    with pytest.raises(ValueError):
        make()
    assert make() == 3 == make()


def test_a_message_has_one_class(monkeypatch):
    from google.protobuf import descriptor_pb2, descriptor_pool

    theirs = descriptor_pool.DescriptorPool

    def slow():
        time.sleep(0.02)
        return theirs()

    monkeypatch.setattr(descriptor_pool, "DescriptorPool", slow)
    file = descriptor_pb2.FileDescriptorProto(name=f"{Path(__file__).stem}.proto", package="caffe")
    file.message_type.add(name="Of" + sys.implementation.name.capitalize())
    data, name = file.SerializeToString(), f"caffe.{file.message_type[0].name}"
    classes = asked(lambda: message_class(data, name))
    assert len(set(map(id, classes))) == 1
    one, other = classes[0](), classes[-1]()
    one.CopyFrom(other)
