/** Returns the script of `rdctl completion bash`. `asks` is the command that it calls. Supports Bash 3.2. */
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

/** Returns the script of `rdctl completion fish`. `asks` is the command that it calls. */
export function fishScript(asks: string): string {
  return `# Completion of rdctl for fish. Load it with: rdctl completion fish | source
# or save it as ~/.config/fish/completions/rdctl.fish

function __rdctl_offers
    set -l before (commandline -opc)
    set -l current (commandline -ct)
    set -l program $before[1]
    set -e before[1]
    # A quote that is still open belongs to the shell.
    set current (string replace -r '^["\\']' '' -- $current)
    set -l answer ($program ${asks} $before "$current" 2>/dev/null)
    test (count $answer) -gt 0; or return
    set -l directive (string sub -s 2 -- $answer[-1])
    set -e answer[-1]

    # What is offered for --name=... is the value alone; fish wants the whole word.
    set -l done (string match -r '^--[^=]*=' -- $current)
    for line in $answer
        printf '%s%s\\n' "$done" $line
    end
    if test (count $answer) -eq 0
        set -l typed (string replace -- "$done" '' $current)
        switch $directive
            case 0
                printf "$done%s\\n" (__fish_complete_path "$typed")
            case 16
                printf "$done%s\\n" (__fish_complete_directories "$typed" '')
        end
    end
end

complete -c rdctl -e
complete -c rdctl -f -a '(__rdctl_offers)'
`;
}

/** Returns the script of `rdctl completion powershell`. `asks` is the command that it calls. */
export function powershellScript(asks: string): string {
  return `# Completion of rdctl for PowerShell. Load it with: rdctl completion powershell | Out-String | Invoke-Expression

Register-ArgumentCompleter -Native -CommandName 'rdctl' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    # A quote that is still open belongs to the shell.
    $current = "$wordToComplete".TrimStart('"', "'")
    $before = @($commandAst.CommandElements |
        Select-Object -Skip 1 |
        Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object { if ($_ -is [System.Management.Automation.Language.StringConstantExpressionAst]) { $_.Value } else { $_.Extent.Text } })
    # Before 7.3 an empty argument of a program is dropped unless it is written like this.
    $last = if ($current -ne '' -or $PSVersionTable.PSVersion -ge [version]'7.3') { $current } else { '""' }
    $program = "$($commandAst.CommandElements[0])"
    $answer = @(& $program ${asks} @before $last 2>$null)
    if ($answer.Count -lt 2) { return }

    # What is offered for --name=... is the value alone; the whole word is replaced.
    $done = if ($current -match '^(--[^=]*=)') { $Matches[1] } else { '' }
    $answer[0..($answer.Count - 2)] | ForEach-Object {
        $word, $about = $_ -split "\`t", 2
        if (-not $about) { $about = $word }
        $text = if ($word -match '[^\\w.,:/@=+-]') { "'" + $word.Replace("'", "''") + "'" } else { $word }
        [System.Management.Automation.CompletionResult]::new("$done$text", $word, 'ParameterValue', $about)
    }
}
`;
}

/** Returns the script of `rdctl completion zsh`. `asks` is the command that it calls. */
export function zshScript(asks: string): string {
  return `#compdef rdctl
# Completion of rdctl for Zsh. Load it with: source <(rdctl completion zsh)
# or save it as _rdctl in a directory of $fpath. Both need compinit.

_rdctl() {
    local current="\${(Q)PREFIX}" answer directive line word
    local -a before offers
    before=("\${(@Q)words[2,CURRENT-1]}")
    answer="$("\${(Q)words[1]}" ${asks} "\${(@)before}" "$current" 2>/dev/null)" || return 1
    directive="\${answer##*:}"
    answer="\${answer%:*}"

    # What is offered for --name=... is the value alone.
    [[ "$current" == --*=* ]] && compset -P '*='

    for line in "\${(@f)answer}"; do
        [[ -z "$line" ]] && continue
        word="\${line%%$'\\t'*}"
        word="\${word//:/\\\\:}"
        if [[ "$line" == *$'\\t'* ]]; then
            offers+=("$word:\${line#*$'\\t'}")
        else
            offers+=("$word")
        fi
    done

    if (( \${#offers} )); then
        _describe -V 'completions' offers
    elif [[ "$directive" == 0 ]]; then
        _files
    elif [[ "$directive" == 16 ]]; then
        _files -/
    else
        return 1
    fi
}

if [[ "\${funcstack[1]}" == _rdctl ]]; then
    _rdctl "$@"
else
    compdef _rdctl rdctl
fi
`;
}
