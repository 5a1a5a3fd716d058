"""Write docs/reference/accuracy.md from the tables of the C++ front end."""

from pathlib import Path

from refsim.frontends.cuda_cpp.intrinsics.accuracy import page

if __name__ == "__main__":
    (Path(__file__).parents[1] / "docs" / "reference" / "accuracy.md").write_text(page(), encoding="utf-8")
