"""The text of a transition system (BTOR2, as Yosys writes it) as a list of operations."""

from dataclasses import dataclass, field

__all__ = ["Node", "TransitionSystem"]

OPERATIONS = frozenset("""
    not neg redand redor redxor and nand or nor xor xnor add sub mul eq neq ult ulte ugt ugte slt slte sgt sgte sll srl
    sra ite concat slice uext sext
""".split())


@dataclass(frozen=True)
class Node:
    """One value of ``width`` bits: ``op`` of the nodes ``args``, with ``numbers`` (of a slice: upper and lower bit; of
    an extension: bits more; of a constant: its value)."""

    op: str
    width: int
    args: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()


@dataclass
class TransitionSystem:
    """Nodes by number, and what some of them are.

    inputs, states, outputs : name to node
    named : name to node, of every wire that kept its name
    init, next : state node to node
    order : nodes needed by outputs and states, each after its arguments
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    inputs: dict[str, int] = field(default_factory=dict)
    states: dict[int, str] = field(default_factory=dict)
    outputs: dict[str, int] = field(default_factory=dict)
    named: dict[str, int] = field(default_factory=dict)
    init: dict[int, int] = field(default_factory=dict)
    next: dict[int, int] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)

    @classmethod
    def parse(cls, text: str) -> "TransitionSystem":
        """Read ``text``. An input ``peek__<name>`` becomes the wire ``unit.<name>``. Raises `ValueError` for what is
        not understood, and for a peek at a wire that there is not."""
        made = cls()
        sorts: dict[int, int] = {}
        for line in text.splitlines():
            words = line.partition(";")[0].split()
            if words:
                made._line(words, sorts)
        for name, node in [(n, i) for n, i in made.inputs.items() if n.startswith("peek__")]:
            target = made.named.get("unit." + name.removeprefix("peek__"))
            if target is None or made.nodes[target].width != made.nodes[node].width:
                raise ValueError(f"{name}: no such wire of that width in the unit")
            made.nodes[node] = Node("uext", made.nodes[node].width, (target,), (0,))
            del made.inputs[name]
        made._sort()
        return made

    def _line(self, words: list[str], sorts: dict[int, int]) -> None:
        number, op, *rest = int(words[0]), *words[1:]
        if op == "sort":
            if rest[0] != "bitvec":
                raise ValueError(f"a sort of {rest[0]}: memories are to be mapped to registers")
            sorts[number] = int(rest[1])
        elif op == "output":
            self.outputs[rest[1]] = self._node(rest[0])
        elif op in ("init", "next"):
            getattr(self, op)[int(rest[1])] = self._node(rest[2])
        elif op in ("input", "state"):
            self.nodes[number] = Node(op, sorts[int(rest[0])])
            name = rest[1] if len(rest) > 1 else f"{op}{number}"
            self.named[name] = number
            if op == "input":
                self.inputs[name] = number
            else:
                self.states[number] = name
        elif op in ("const", "constd", "consth", "zero", "one", "ones"):
            width = sorts[int(rest[0])]
            base = {"const": 2, "constd": 10, "consth": 16}.get(op)
            value = int(rest[1], base) if base else {"zero": 0, "one": 1, "ones": -1}[op]
            self.nodes[number] = Node("const", width, (), (value & ((1 << width) - 1),))
        elif op in OPERATIONS:
            width = sorts[int(rest[0])]
            count = {"slice": 1, "uext": 1, "sext": 1, "ite": 3}.get(op, 1 if op in (
                "not", "neg", "redand", "redor", "redxor") else 2)
            numbers = {"slice": 2, "uext": 1, "sext": 1}.get(op, 0)
            args, after = rest[1:1 + count], rest[1 + count:]
            self.nodes[number] = Node(op, width, tuple(map(self._node, args)), tuple(map(int, after[:numbers])))
            if len(after) > numbers:
                self.named[after[numbers]] = number
        else:
            raise ValueError(f"BTOR operation {op!r} in {' '.join(words)}")

    def inputs_of(self, output: str) -> set[str]:
        """Inputs on which ``output`` depends in the same cycle."""
        names = {node: name for name, node in self.inputs.items()}
        seen: set[int] = set()
        stack = [self.outputs[output]]
        while stack:
            number = stack.pop()
            if number not in seen:
                seen.add(number)
                stack += self.nodes[number].args
        return {names[number] for number in seen if number in names}

    def _node(self, text: str) -> int:
        """Number of the node that ``text`` means: -n is the complement of n."""
        number = int(text)
        if abs(number) not in self.nodes:
            raise ValueError(f"no node {number}: nonsense from the BTOR writer")
        if number < 0:
            self.nodes[number] = Node("not", self.nodes[-number].width, (-number,))
        return number

    def _sort(self) -> None:
        """Fill ``order``. Raises `ValueError` where a peek closes a combinational loop."""
        seen: dict[int, bool] = {}          # False: its arguments are being visited
        roots = [*self.outputs.values(), *self.next.values(), *self.init.values(), *self.states, *self.inputs.values()]
        for root in roots:
            stack = [(root, False)]
            while stack:
                number, leaving = stack.pop()
                if leaving:
                    seen[number] = True
                    self.order.append(number)
                elif number not in seen:
                    seen[number] = False
                    stack.append((number, True))
                    stack += [(arg, False) for arg in self.nodes[number].args if not seen.get(arg)]
                    if any(seen.get(arg) is False for arg in self.nodes[number].args):
                        raise ValueError("combinational loop")
