"""Renders templates as transformers does, for comparison.

Reads {"templates": [text, ...], "variables": [{...}, ...]} from standard input and writes, for each template, the list of
its results over all variables: {"text": ...} or {"error": ...}. Needs Jinja2 alone.
"""

import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import Extension, loopcontrols
from jinja2.nodes import CallBlock
from jinja2.sandbox import ImmutableSandboxedEnvironment


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(
    trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
)
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception
environment.globals["strftime_now"] = lambda format: "26 Jul 2026"


def render(source, sets):
    try:
        template = environment.from_string(source)
    except Exception as error:
        return [{"error": f"{type(error).__name__}: {error}"} for _ in sets]
    results = []
    for variables in sets:
        try:
            # A template may change what it is given: `[] | indent` does.
            text = template.render(**json.loads(json.dumps(variables)))
            text.encode()
            results.append({"text": text})
        except Exception as error:
            results.append({"error": f"{type(error).__name__}: {error}"})
    return results


job = json.load(sys.stdin)
json.dump([render(source, job["variables"]) for source in job["templates"]], sys.stdout)
