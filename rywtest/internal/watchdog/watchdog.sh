# Watchdog of one test cluster. It says "ready" when no signal can end it any
# more but SIGKILL, then reads lines from its standard input:
#
#   pid PID START    a process to end, if it still is the one that started then
#   dir PATH         a directory to remove
#   run COMMAND      a command to run, for what is neither
#   done             everything is tidied up: leave
#
# When the input ends without "done", whoever held the other end is dead, and
# what was listed is ended and removed: first politely (SIGQUIT makes PostgreSQL
# leave at once and free its shared memory), after 5 seconds by SIGKILL.
# Only built-in commands, sleep, rm and, where there is no /proc, ps and tr are used.

# shellcheck disable=SC2046,SC2086 # words are meant to be split

trap '' HUP INT TERM QUIT
export LC_ALL=C # for the times that ps prints
newline='
'
pids='' dirs='' runs=''

# look PID sets start, state and parent; false when there is no such process.
# children PARENTS sets kids, as PID:START; PARENTS has a blank around each. It looks
# at every process there is, which on a busy machine takes its time: once for all.
if [ -r /proc/self/stat ]; then
    look() {
        { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
        set -- ${line##*) }
        state=$1 parent=$2
        shift 19
        start=$1
    }
    children() {
        kids=''
        for entry in /proc/[0-9]*; do
            look "${entry#/proc/}" || continue
            case $1 in *" $parent "*) kids="$kids ${entry#/proc/}:$start" ;; esac
        done
    }
else
    look() {
        set -- $(ps -p "$1" -o ppid=,stat=,lstart=)
        [ $# -ge 7 ] || return 1
        parent=$1 state=$2 start=$3_$4_$5_$6_$7
    }
    children() {
        kids=$(ps -A -o pid=,ppid=,lstart= | while read -r pid ppid lstart; do
            case $1 in *" $ppid "*) echo "$pid:$(echo $lstart | tr ' ' _)" ;; esac
        done)
    }
fi

# alive PID:START
alive() {
    look "${1%%:*}" && [ "$start" = "${1#*:}" ] || return 1
    case $state in Z* | X*) return 1 ;; esac
}

# signal NAME sends it to the listed processes and to their children, which in
# PostgreSQL are leaders of their own process groups, and lists those, too.
signal() {
    parents=' ' live=''
    for p in $pids; do
        alive "$p" && parents="$parents${p%%:*} " live="$live $p"
    done
    [ -n "$live" ] || return 0
    children "$parents"
    for p in $live $kids; do
        kill -"$1" "${p%%:*}" 2>/dev/null
    done
    pids="$pids $kids"
}

# await N waits up to N tenths of a second for all listed processes.
await() {
    left=$1
    for p in $pids; do
        while alive "$p" && [ "$left" -gt 0 ]; do
            sleep 0.2
            left=$((left - 2))
        done
    done
}

echo ready
while read -r kind rest; do
    case $kind in
    pid) pids="$pids ${rest% *}:${rest#* }" ;;
    dir) dirs="$dirs$rest$newline" ;;
    run) runs="$runs$rest$newline" ;;
    done) exit 0 ;;
    esac
done

for p in $pids; do
    alive "$p" && kill -QUIT "${p%%:*}"
done
signal CONT
await 50
signal KILL
await 20

set -f
IFS=$newline
for command in $runs; do
    (unset IFS; set +f; eval "$command") </dev/null >/dev/null 2>&1
done
for dir in $dirs; do
    rm -rf "$dir" || rm -rf "$dir"
done
