/** The script of `rdctl completion bash`; `asks` is the command it calls. Supports Bash 3.2. */
export function bashScript(asks: string): string {
  return `# Completion of rdctl for Bash. Load it with: source <(rdctl completion bash)

__rdctl_complete() {
    # Bash splits words at signs such as = and :, so the words are put together again from the line.
    local rest=\${COMP_LINE:0:COMP_POINT} at lead word
    local -a words=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        lead=\${rest%%[![:space:]]*}
        rest=\${rest#"$lead"}
        word=\${COMP_WORDS[at]}
        [[ $at -eq $COMP_CWORD ]] && word=$rest
        rest=\${rest#"$word"}
        if [[ -z $lead && $at -gt 0 ]]; then
            words[\${#words[@]}-1]+=$word
        else
            words+=("$word")
        fi
    done

    # Quotes and backslashes belong to the shell.
    local last=$((\${#words[@]} - 1)) quote=
    for ((at = 1; at <= last; at++)); do
        word=\${words[at]}
        [[ $at -eq $last && $word == [\\"\\']* ]] && quote=\${word:0:1}
        word=\${word//[\\"\\']/}
        words[at]=\${word//\\\\/}
    done
    local program=\${words[0]} current=\${words[last]}
    [[ $program == '~/'* ]] && program=$HOME/\${program:2}

    local answer directive
    answer=$("$program" ${asks} "\${words[@]:1}" 2>/dev/null) || return
    directive=\${answer##*:}
    answer=\${answer%:*}

    # Only what follows the last sign that splits a word is replaced.
    local done=
    if [[ -z $quote ]]; then
        if [[ $current == *:* && $COMP_WORDBREAKS == *:* ]]; then
            done=\${current%"\${current##*:}"}
        fi
        [[ $current == --*=* ]] && done=\${done#*=}
    fi

    COMPREPLY=()
    local -a about=()
    local line longest=0
    while IFS= read -r line; do
        [[ -z $line ]] && continue
        word=\${line%%$'\\t'*}
        word=\${word#"$done"}
        [[ -z $quote ]] && printf -v word '%q' "$word"
        COMPREPLY+=("$word")
        about+=("\${line#*$'\\t'}")
        [[ $line == *$'\\t'* ]] || about[\${#about[@]}-1]=
        ((\${#word} > longest)) && longest=\${#word}
    done <<<"$answer"

    # A list that is only looked at says what the words mean.
    if [[ \${#COMPREPLY[@]} -gt 1 && ( $COMP_TYPE -eq 63 || $COMP_TYPE -eq 33 ) ]]; then
        local room=$((\${COLUMNS:-80} - longest - 6))
        for ((at = 0; at < \${#COMPREPLY[@]}; at++)); do
            [[ -z \${about[at]} || $room -lt 10 ]] && continue
            line=\${about[at]}
            ((\${#line} > room)) && line=\${line:0:room-3}...
            printf -v COMPREPLY[at] "%-\${longest}s  (%s)" "\${COMPREPLY[at]}" "$line"
        done
    fi

    if [[ $directive -ne 0 ]]; then
        type compopt &>/dev/null && compopt +o default 2>/dev/null
        [[ $directive -eq 16 ]] && COMPREPLY=($(compgen -d -- "\${current#--*=}"))
    fi
}

complete -o default -F __rdctl_complete rdctl
`;
}
