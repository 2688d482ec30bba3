function __status_ctl
    set -l words (commandline -opc)
    set -l program (string replace -r -- '^~/' "$HOME/" $words[1])
    type -q -- $program; or return
    set -e words[1]
    set -l last (commandline -ct)
    set -l before (string match -r -- '^--[^=]*=' $last)
    set -l value (string replace -r -- '^--[^=]*=' '' $last)
    for line in ($program __complete $words "$last" 2>/dev/null)
        switch $line
            case :0
                complete -C "'' $value" | string replace -r -- '^' "$before"
            case :16
                __fish_complete_directories "$value" | string replace -r -- '^' "$before"
            case ':*'
            case '*'
                printf '%s\n' $line
        end
    end
end
complete -c status-ctl -f -a '(__status_ctl)'
