#!/bin/bash
# Runs the commands under "Pictures" of docs/learners.md and puts what they draw into this
# folder: make pictures.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mercer() { "$MERCER" "$@" --quiet >/dev/null; }

ln -s "$root/docs" "$root/testdata" "$work"
sed -n '/^## Pictures$/,/^## Defaults$/p' docs/learners.md | grep -o '`mercer [^`]*`' | tr -d '`' > "$work/commands"
cd "$work"
. ./commands
cp ./*.svg "$root/docs/pictures"
