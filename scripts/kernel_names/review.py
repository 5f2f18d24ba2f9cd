"""What the judgement leaves open, and where a kernel's file and its name say different parts."""

from collections import defaultdict

from stepline.facts import kernel_dictionary, kernels
from stepline.facts.kernel_grammar import spoken


def show() -> None:
    """Print, by file, kernels without a part; then names whose words and file disagree."""
    open_, differ, total = defaultdict(list), defaultdict(list), 0
    for package in kernel_dictionary.packages():
        for file, names in package.files.items():
            for name in names:
                total += 1
                part, place = kernels.component(name).component, f"{package.package}/{file}"
                if part == kernels.UNATTRIBUTED:
                    open_[place].append(name)
                by_file = kernel_dictionary.file_part(kernel_dictionary.shipped(spoken(name)), firm=False)
                if by_file and by_file != part:
                    differ[part, by_file].append(f"{name}  {place}")
    print(f"{total} kernels, {sum(map(len, open_.values()))} without a part")
    for place, names in sorted(open_.items()):
        print(f"  {place}: {' '.join(names)}")
    print("\npart by name, part by file, kernels")
    for (part, by_file), names in sorted(differ.items(), key=lambda item: -len(item[1])):
        print(f"{part} / {by_file}: {len(names)}")
        for name in names:
            print(f"    {name}")
