#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rules and commands of README and doc/ do what the pages say, in the view
# that they state.
#
# usage: test_readme.sh SUNDOG LIBSUNDOG LIBCUDNN CLIENTS PAGE...
# shellcheck disable=SC2154,SC2317,SC1091,SC2086,SC2046,SC2016 # harness.sh; words
. "$(dirname "$0")/../harness.sh"
here=$(cd "$(dirname "$0")" && pwd) host=$(dirname "$(realpath "$3")")
readme=$top/pages.md
cat "${@:5}" >"$readme"
bathymetry=$here/../../clients/bathymetry.npy
# Lines of the README become words here, so they must have no blanks.
ln -s "$(realpath "$4")" "$top/clients"
clients=$top/clients
rmdir "$top/build/src/host/lib"
ln -s "$host" "$top/build/src/host/lib"
export OMP_NUM_THREADS=1

# heads: prints the first line of each block of rules, in the README's order.
heads() {
  awk '/^```ini/ { on = 1; next } /^```/ { on = 0 }
    on && /^\[(shard|local)/ { print $2; on = 0 }' "$readme" | tr -d ']'
}
# block HEAD: prints that block.
block() {
  awk -v head="$1]" '/^```ini/ { on = 1; text = ""; first = ""; next }
    /^```/ { if (on && first == head) { printf "%s", text; exit } on = 0 }
    on { text = text $0 "\n" }
    on && first == "" && /^\[(shard|local)/ { first = $2 }' "$readme"
}
# commands WORD: prints the README's commands with this word, without `sundog`.
commands() {
  sed -n 's/^    \(\$ \)\?sundog //p' "$readme" | sed 's/ *#.*//' |
    grep -- "$1" | awk '!seen[$0]++' | sed 's/ *$//' | tee -a "$top/taken"
}
# losses_agree FILE FILE: compares the losses of the steps that both have.
losses_agree() {
  awk 'NR == FNR && $1 == "step" { right[$2] = $4; next }
    $1 == "step" && ($2 in right) { seen++; off = $4 / right[$2] - 1
      if (off * off > 1e-8) { print "# step " $2 ": " $4 ", not " right[$2]
        bad = 1 } }
    END { exit bad || !seen }' "$1" "$2"
}
# program NAME WORDS...: runs the program without sundog.
program() { LD_LIBRARY_PATH=$host "$clients/$1" "${@:2}"; }

every_block_of_rules_is_run_here() {
  # tests/clients/nets/check runs `up`, the two layers; the second `field` and
  # `heat`, of functions, are read by tests/clients/functions/check.
  heads | tr '\n' ' ' >found
  echo -n 'head field up field attention tokens decoder field heat image ' >right
  run 0 diff right found
}
the_fields_of_the_commands_are_cut_and_joined() {
  # `solver` stands for the solver of waves, which needs a second field.
  local more="--order 4 --steps 5 --dx 2400 --dt 15 --friction 0" line said
  "$clients/scene" "$bathymetry" 2048 16 .
  mv level.npy field.npy
  program shallow --in field.npy --depth depth.npy --out alone.npy $more
  line=$(commands 'inspect -n 4 -- solver')
  line=${line/inspect/inspect --device host}
  run 0 "$sundog" ${line/solver/$clients/shallow --depth depth.npy} $more
  says out 'best: '
  line=$(commands 'split --parts .* field.npy')
  run 0 "$sundog" $line
  run 0 "$sundog" ${line/field/depth}
  line=$(commands 'view shard --split H -- solver --in')
  line=${line/run/run --device host}
  line=${line/solver/$clients/shallow --depth depth.\{rank\}.npy}
  run 0 "$sundog" ${line//\\/} $more
  said=$(sed -n 's/^    sundog: \(.* H 2048 = .*\)/\1/p' "$readme")
  [ -n "$said" ]
  says err "$said"
  run 0 "$sundog" $(eval echo "$(commands 'join out.npy')")
  run 0 "$sundog" diff alone.npy out.npy
  rm out.npy
  line=$(commands 'view whole --split H -- solver --in')
  line=${line/run/run --device host}
  run 0 "$sundog" ${line/solver/$clients/shallow --depth depth.npy} $more
  run 0 "$sundog" diff alone.npy out.npy
}
drafted_rules_run_in_the_view_that_they_say() {
  local more="--order 4 --steps 5 --dx 2400 --dt 15 --friction 0" line view
  "$clients/scene" "$bathymetry" 256 16 .
  mv level.npy field.npy
  program shallow --in field.npy --depth depth.npy --out alone.npy $more
  for view in shard whole; do
    line=$(commands 'inspect -o solver.rules')
    line=${line/inspect/inspect --device host --view $view -n 4}
    run 0 "$sundog" ${line/solver --/$clients/shallow --depth depth.npy --} $more
    if [ $view = shard ]; then
      run 0 "$sundog" split -n 4 field.npy
      run 0 "$sundog" split -n 4 depth.npy
      line=$(commands 'rules solver.rules -- solver --in field.{rank}')
      line=${line/solver --/$clients/shallow --depth depth.\{rank\}.npy --}
    else
      line=$(commands 'rules solver.rules -- solver --in field.npy')
      line=${line/solver --/$clients/shallow --depth depth.npy --}
    fi
    line=${line/run/run --device host}
    run 0 "$sundog" ${line//\\/} $more
    says err "view $view"
    [ $view = whole ] ||
      run 0 "$sundog" join out.npy out.0.npy out.1.npy out.2.npy out.3.npy
    run 0 "$sundog" diff alone.npy out.npy
    rm -f out*.npy solver.rules
  done
}
training_has_the_losses_that_are_printed() {
  local line
  block head >simplecnn.rules
  commands '-- simplecnn' >lines
  [ "$(wc -l <lines)" = 3 ]
  sed -n 's/^    \(step .* loss .*\)/\1/p' "$readme" | sort -u -k 2n,2 >printed
  while read -r line; do
    line=${line/run/run --device host}
    run 0 "$sundog" ${line/-- simplecnn/-- $clients/simplecnn} --steps 120
    cp out losses
    losses_agree printed losses
  done <lines
}
a_field_on_a_circle_is_that_of_one_rank() {
  # The first rules file: rows over four ranks, columns periodic.
  block field >four.rules
  sed 's/^y = 4/y = 1/' four.rules >one.rules
  grep -q 'y = 1' one.rules
  "$clients/scene" "$bathymetry" 91 120 .
  local words=(--order 4 --steps 20 --dx 2400 --dt 15 --friction 0.0005)
  run 0 "$sundog" run --device host -n 1 --rules one.rules -- \
    "$clients/shallow" --in level.npy --depth depth.npy --out right.npy \
    "${words[@]}"
  run 0 "$sundog" split --parts 30,20,20,21 level.npy
  run 0 "$sundog" split --parts 30,20,20,21 depth.npy
  run 0 "$sundog" run --device host -n 4 --rules four.rules -- \
    "$clients/shallow" --in 'level.{rank}.npy' --depth 'depth.{rank}.npy' \
    --out 'out.{rank}.npy' "${words[@]}"
  says err 'H 91 = 30+20+20+21 over y=4, view shard'
  run 0 "$sundog" join out.npy out.0.npy out.1.npy out.2.npy out.3.npy
  run 0 "$sundog" diff right.npy out.npy
}
tokens_see_the_window_of_their_section() {
  # The processor's window is 5,5; its other rules stay.
  { block tokens | sed 's/^window = 512,0/window = 5,5/'
    sed -n '/^\[shard token\]/,$p' "$here/../../clients/nets/processor.rules"; } >t.rules
  grep -q 'window = 5,5' t.rules
  program processor --steps 5 >right
  run 0 "$sundog" run --device host -n 3 --view shard --rules t.rules -- \
    "$clients/processor" --steps 5 --parts 20,13,17 --part '{rank}'
  cp out losses
  losses_agree right losses
  # The same by the command line.
  sed -i '/^window/d' t.rules
  run 0 "$sundog" run --device host -n 3 --view shard --rules t.rules \
    --window 5,5 -- "$clients/processor" --steps 5 --parts 20,13,17 --part '{rank}'
  cp out losses
  losses_agree right losses
  run 1 "$sundog" run --device host -n 3 --view shard --rules t.rules -- \
    "$clients/processor" --steps 5 --parts 20,13,17 --part '{rank}'
}
what_is_kept_for_gradients_changes_no_loss() {
  { awk '/^```ini/ { on = 1; text = ""; next }
    /^```/ { if (on && text ~ /keep/) printf "%s", text; on = 0 }
    on { text = text $0 "\n" }' "$readme"; } >k.rules
  grep -q '^keep' k.rules
  program unet --steps 4 >right
  run 0 "$sundog" run --device host -n 2 --view shard --rules k.rules -- \
    "$clients/unet" --steps 4 --parts 16,16 --part '{rank}'
  cp out losses
  losses_agree right losses
}
rules_of_a_transformer_of_graphs_are_read() {
  # tests/clients/graphs/nets/check trains one with fewer channels.
  block attention >g.rules
  run 0 "$sundog" rules --check -n 4 --view shard g.rules
  says out '[shard gradient-down] match M=4096 N=1024 K'
  says out '[shard token] match N C 1 1'
}
rules_of_a_decoder_are_read() {
  # No program here uses both; tests/equivalence tests them.
  block decoder >d.rules
  run 0 "$sundog" rules --check -n 2 --view shard d.rules
  says out '[local decoder]'
  says out '[shard encoder]'
}
ranks_that_compute_the_same_are_compared() {
  # Two by four ranks; those along `model` have the same rows.
  block image >i.rules
  "$clients/scene" "$bathymetry" 91 12 .
  local words=(--order 4 --steps 5 --dx 2400 --dt 15 --friction 0.0005) piece
  program shallow --in level.npy --depth depth.npy --out right.npy \
    "${words[@]}"
  run 0 "$sundog" split --parts 30,20,20,21 level.npy
  run 0 "$sundog" split --parts 30,20,20,21 depth.npy
  piece='i=$(({rank} % 4)); o=$(({rank} / 4))'
  run 0 "$sundog" run --device host -n 8 --view shard --rules i.rules -- \
    sh -c "$piece; exec $clients/shallow --in level.\$i.npy --depth \
      depth.\$i.npy --out out\$o.\$i.npy ${words[*]}"
  says err 'H 91 = 30+20+20+21 over y=4, view shard'
  lacks err 'not compared'
  for o in 0 1; do
    run 0 "$sundog" join "all$o.npy" "out$o.0.npy" "out$o.1.npy" \
      "out$o.2.npy" "out$o.3.npy"
    run 0 "$sundog" diff right.npy "all$o.npy"
  done
}
every_command_that_the_list_says_was_run() {
  sed -n 's/^readme *| sundog //p' "$here/commands" | sort >right
  sort -u "$top/taken" >found
  run 0 diff right found
}

cases every_block_of_rules_is_run_here \
  the_fields_of_the_commands_are_cut_and_joined \
  drafted_rules_run_in_the_view_that_they_say \
  training_has_the_losses_that_are_printed \
  a_field_on_a_circle_is_that_of_one_rank \
  tokens_see_the_window_of_their_section \
  what_is_kept_for_gradients_changes_no_loss \
  rules_of_a_transformer_of_graphs_are_read rules_of_a_decoder_are_read \
  ranks_that_compute_the_same_are_compared \
  every_command_that_the_list_says_was_run
