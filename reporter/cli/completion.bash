_status_ctl() {
  local word glue="" last=-1 before
  local -a args=()
  # --output=json comes as three words.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $last -ge 0 && ($word == "=" || $glue) ]]; then args[last]+=$word; else args[++last]=$word; fi
    if [[ $word == "=" ]]; then glue=1; else glue=""; fi
  done
  before=${args[last]%"${COMP_WORDS[COMP_CWORD]#=}"}
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    case $word in
      :0) compopt -o default ;;
      :16) compopt -o dirnames ;;
      :*) ;;
      *) COMPREPLY+=("${word#"$before"}") ;;
    esac
  done < <("${1/#~\//$HOME/}" __complete "${args[@]}" 2>/dev/null)
}
complete -F _status_ctl status-ctl
