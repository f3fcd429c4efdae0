/** The script of `rdctl completion powershell`; `asks` is the command it calls. */
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
