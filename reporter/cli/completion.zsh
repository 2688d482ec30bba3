#compdef status-ctl
# To be sourced, or to be put as `_status-ctl` where `fpath` leads.
_status-ctl() {
  local line
  local -a choices
  for line in "${(@f)$(${~words[1]} __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      (:0) compset -P '--*='; _files; return ;;
      (:16) compset -P '--*='; _files -/; return ;;
      (:*) ;;
      (*) choices+=("${${line//:/\\:}/$'\t'/:}") ;;
    esac
  done
  _describe choice choices
}
if [[ "$funcstack[1]" == _status-ctl ]]; then _status-ctl "$@"
else compdef _status-ctl status-ctl; fi
