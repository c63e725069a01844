# What a small administrator's script does: files made, copied, searched, changed, moved and removed, a process a step.
set -e
mkdir out
for n in 1 2 3 4 5 6 7 8; do
    echo "line $n" >out/"$n"
    cp out/"$n" out/copy-"$n"
    grep -q "line $n" out/copy-"$n"
    sed 's/line/row/' out/"$n" >out/rows-"$n"
    cat out/"$n" out/rows-"$n" >out/both-"$n"
    chmod 600 out/both-"$n"
    mv out/both-"$n" out/final-"$n"
    ls out >out/list-"$n"
done
cat out/list-* | sort | uniq -c | sort -n | tail -n 1 >total
rm -r out total
