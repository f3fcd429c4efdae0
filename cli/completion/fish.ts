/** The script of `rdctl completion fish`; `asks` is the command it calls. */
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
