/** The script of `rdctl completion zsh`; `asks` is the command it calls. */
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
