import { quote } from '../../kit/errors.ts';
import { usageProblem } from '../args.ts';
import type { Command } from '../command.ts';
import { exits } from '../command-spec.ts';

const scripts = {
  bash: `# bash completion of drawbridge; needs bash 4.3 (macOS has 3.2). To load it: source <(drawbridge completion bash)
_drawbridge() {
  local line word words=() flag=''
  # Bash splits --flag=value into three words.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ $word == '=' && \${#words[@]} -gt 0 && \${words[-1]} == --* ]]; then words[-1]+='='
    elif [[ \${#words[@]} -gt 0 && \${words[-1]} == --*= ]]; then words[-1]+=$word
    else words+=("$word"); fi
  done
  # Bash then replaces only the value.
  if [[ \${words[-1]} == --*=* && \${COMP_WORDS[COMP_CWORD]} != --*=* ]]; then flag=\${words[-1]%%=*}=; fi
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :0) [ \${#COMPREPLY[@]} -gt 0 ] || mapfile -t COMPREPLY < <(compgen -f -- "\${words[-1]#"$flag"}") ;;
      :*) ;;
      *)
        line=\${line%%$'\\t'*}
        # A name may contain what the shell would run.
        printf -v line %q "\${line#"$flag"}"
        COMPREPLY+=("$line") ;;
    esac
  done < <(drawbridge __complete "\${words[@]}" 2>/dev/null)
}
complete -F _drawbridge drawbridge
`,
  zsh: `#compdef drawbridge
# zsh completion of drawbridge. To load it, after compinit: source <(drawbridge completion zsh)
_drawbridge() {
  local line
  local -a lines candidates
  lines=("\${(@f)$(drawbridge __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for line in "\${lines[@]}"; do
    case $line in
      :0) _files; return ;;
      :*|'') ;;
      *$'\\t'*) candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}") ;;
      *) candidates+=("\${line//:/\\\\:}") ;;
    esac
  done
  _describe drawbridge candidates
}
compdef _drawbridge drawbridge
`,
  fish: `# fish completion of drawbridge. To load it: drawbridge completion fish | source
function __drawbridge_complete
  set -l lines (drawbridge __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)
  if test "$lines[-1]" = ':0'
    __fish_complete_path (commandline -ct)
  end
  printf '%s\\n' $lines | string match -v -r '^:[0-9]+$'
end
complete -c drawbridge -f -a '(__drawbridge_complete)'
`,
  kubectl: `#!/bin/sh
# kubectl runs this program for the completion of: kubectl drawbridge
# To install it: drawbridge completion kubectl > kubectl_complete-drawbridge, executable, in a folder of PATH.
exec kubectl-drawbridge __complete "$@"
`,
} as const satisfies Record<string, string>;

const shells = Object.keys(scripts) as (keyof typeof scripts)[];

export const completion: Command = {
  name: 'completion',
  summary: 'Print the completion script of a shell',
  details:
    'For bash, zsh, and fish, the script completes the program drawbridge. For kubectl, it is the program kubectl_complete-drawbridge, which kubectl runs to complete kubectl drawbridge; it must be executable and in PATH. The script for bash needs bash 4.3, the one for zsh needs compinit before it.',
  args: [{ name: 'SHELL', complete: shells }],
  examples: ['completion bash', 'completion kubectl'],
  run({ args, io }) {
    const shell = shells.find((one) => one === args.positionals[0]);
    if (!shell)
      throw usageProblem(`unknown shell ${quote(args.positionals[0] ?? '')}; available: ${shells.join(', ')}`);
    io.print(scripts[shell]);
    return Promise.resolve(exits.done);
  },
};
