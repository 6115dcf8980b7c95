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
pids='' family='' dirs='' runs=''

# look PID sets start, state and parent; false when there is no such process.
# children PID sets kids, as PID:START.
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
            look "${entry#/proc/}" && [ "$parent" = "$1" ] && kids="$kids ${entry#/proc/}:$start"
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
            [ "$ppid" = "$1" ] && echo "$pid:$(echo $lstart | tr ' ' _)"
        done)
    }
fi

# alive PID:START
alive() {
    look "${1%%:*}" && [ "$start" = "${1#*:}" ] || return 1
    case $state in Z* | X*) return 1 ;; esac
}

# signal NAME PID:START sends it to the process and to its children, which in
# PostgreSQL are leaders of their own process groups, and remembers them.
signal() {
    alive "$2" || return 0
    children "${2%%:*}"
    family="$family $kids"
    for each in $2 $kids; do
        kill -"$1" "${each%%:*}" 2>/dev/null
    done
}

# await N waits up to N tenths of a second for all listed processes.
await() {
    left=$1
    for p in $pids; do
        while alive "$p" && [ "$left" -gt 0 ]; do
            sleep 0.1
            left=$((left - 1))
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
    signal CONT "$p"
done
pids="$pids $family"
await 50
for p in $pids; do
    signal KILL "$p"
done
pids="$pids $family"
await 20

set -f
IFS=$newline
for command in $runs; do
    (unset IFS; set +f; eval "$command") </dev/null >/dev/null 2>&1
done
for dir in $dirs; do
    rm -rf "$dir" || rm -rf "$dir"
done
