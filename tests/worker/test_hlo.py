"""Operations of XLA and the line of the user's code."""

import json

import pytest

from stele_worker import hlo

# as JAX 0.11 prints a program; with {place} that of an older release
PROGRAM = """HloModule jit_step, is_scheduled=true

FileNames
1 "/home/me/net.py"
2 "/venv/lib/python3.12/site-packages/flax/linen/linear.py"

FunctionNames
1 "body"

FileLocations
1 {{file_name_id=1 function_name_id=1 line=11 end_line=11 column=23 end_column=28}}
2 {{file_name_id=2 function_name_id=1 line=99 end_line=99 column=23 end_column=28}}

StackFrames
7 {{file_location_id=1 parent_frame_id=7}}
8 {{file_location_id=2 parent_frame_id=7}}

%fused (p.1: f32[900], p.2: s32[]) -> f32[900] {{
  %p.1 = f32[900]{{0}} parameter(0)
  ROOT %dus.1 = f32[900]{{0}} dynamic-update-slice(%p.1, %p.1, %p.2)
}}

%body.2 (arg.1: (s32[], f32[900])) -> (s32[], f32[900]) {{
  %arg.1 = (s32[], f32[900]{{0}}) parameter(0)
  %copy.3 = s32[] copy(%arg.1)
  %write_fusion.1 = f32[900]{{0}} fusion(%arg.1, %copy.3), kind=kLoop, calls=%fused, metadata={{op_name="x" {place}}}
  ROOT %tuple.4 = (s32[], f32[900]{{0}}) tuple(%copy.3, %write_fusion.1)
}}

%condition.2 (arg.2: (s32[], f32[900])) -> pred[] {{
  ROOT %compare.1 = pred[] compare(%arg.2, %arg.2), direction=LT
}}

%loop.4 (arg.3: (s32[], f32[900])) -> (s32[], f32[900]) {{
  ROOT %while.9 = (s32[], f32[900]{{0}}) while(%arg.3), condition=%condition.2, body=%body.2
}}

ENTRY %main.7 (x.1: f32[4,64]) -> f32[4,4] {{
  %x.1 = f32[4,64]{{1,0}} parameter(0), metadata={{op_name="x"}}
  %call.3 = (s32[], f32[900]{{0}}) call(%x.1), to_apply=%loop.4, metadata={{op_name="jit(step)/while" {place}}}
  ROOT %dot.12 = f32[4,4]{{1,0}} dot(%x.1, %x.1), metadata={{op_name="dot" stack_frame_id=8}}
}}
"""


@pytest.mark.parametrize(
    ("place", "suffix"),
    [
        ("stack_frame_id=7", " at net.py:11"),
        ('source_file="/home/me/net.py" source_line=11', " at net.py:11"),
        ('source_file="/home/me/net.py" source_line=11 source_end_line=12', " at net.py:11"),
        ("stack_frame_id=6", ""),
        ("stack_frame_id=8", ""),  # in an installed package
        (f'source_file="{hlo.__file__}" source_line=3', ""),
        (f'source_file="{json.__file__}" source_line=3', ""),
        ('source_file="<string>" source_line=3', ""),
        ("", ""),
    ],
)
def test_an_operation_of_xla_has_the_line_of_the_users_code(place, suffix):
    found = hlo.labels([PROGRAM.format(place=place)])
    assert found["jit_step", "write_fusion.1"] == f"write_fusion{suffix}"
    assert found["jit_step", "dot.12"] == "dot"


def test_a_call_has_the_largest_of_the_operations_inside_of_it():
    found = hlo.labels([PROGRAM.format(place="stack_frame_id=7")])
    assert found["jit_step", "call.3"] == "call at net.py:11: while of write_fusion"
    assert found["jit_step", "while.9"] == "while"


@pytest.mark.parametrize(
    ("call", "label"),
    [
        ("call(%x), to_apply=%none.1", "call"),
        ("call(%x), to_apply=%cycle.1", "call: add"),
        ("conditional(%p, %x, %x), branch_computations={%cycle.1, %small.1}", "conditional"),
        ("call(%x), to_apply=%branches.1", "call: add, multiply, sqrt"),
    ],
)
def test_calls_of_other_forms_are_read(call, label):
    text = (
        "HloModule m\n\n"
        "%cycle.1 (a: f32[9]) -> f32[9] {\n  %add.1 = f32[9]{0} add(%a, %a)\n"
        "  ROOT %call.9 = f32[9]{0} call(%a), to_apply=%cycle.1\n}\n\n"
        "%small.1 (a: f32[9]) -> f32[9] {\n  %copy.1 = s32[] copy(%a)\n  %sqrt.2 = f32[9]{0} sqrt(%a)\n"
        "  ROOT %multiply.2 = f32[9]{0} multiply(%a, %a)\n}\n\n"
        "%branches.1 (a: f32[9]) -> f32[9] {\n"
        "  ROOT %c.1 = f32[9]{0} conditional(%p, %a, %a), branch_computations={%cycle.1, %small.1}\n}\n\n"
        f"ENTRY %main (x: f32[9]) -> f32[9] {{\n  ROOT %op.1 = f32[9]{{0}} {call}\n}}\n"
    )
    assert hlo.labels([text])["m", "op.1"] == label.replace("call", "op", 1).replace("conditional", "op", 1)


def test_an_operation_that_two_programs_of_one_name_have_at_different_lines_has_no_line():
    texts = [PROGRAM.format(place=f'source_file="/home/me/net.py" source_line={line}') for line in (3, 4)]
    assert hlo.labels(texts)["jit_step", "write_fusion.1"] == "write_fusion"
    assert hlo.labels(texts[:1] * 2)["jit_step", "write_fusion.1"] == "write_fusion at net.py:3"
