/** What a call of kubectl that streams is about. */
export interface StreamCall {
  readonly verb: 'exec' | 'attach' | 'cp' | 'port-forward';
  readonly pod: string;
  readonly namespace: string;
  /** The URL of the API server, without a path. */
  readonly server: string;
  /** The arguments without the server. */
  readonly rest: readonly string[];
}

const verbs = ['exec', 'attach', 'cp', 'port-forward'];
// Flags of kubectl with a value in the next argument.
const valued = new Set(['-n', '--namespace', '-c', '--container', '-s', '--server', '--kubeconfig', '--address']);

/** The parts of a call of kubectl that opens a stream to a Pod; undefined for any other call. */
export function streamCall(args: readonly string[]): StreamCall | undefined {
  const values = new Map<string, string>();
  const positional: string[] = [];
  const rest: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const arg = args[index] ?? '';
    if (arg === '--') {
      rest.push(...args.slice(index));
      break;
    }
    const [flag = '', inline] = arg.startsWith('-') ? split(arg) : [''];
    const next = valued.has(flag) && inline === undefined ? args[++index] : undefined;
    if (flag !== '') values.set(flag, inline ?? next ?? '');
    else positional.push(arg);
    if (flag !== '--server' && flag !== '-s') rest.push(arg, ...(next === undefined ? [] : [next]));
  }
  const [verb, ...operands] = positional;
  const server = values.get('-s') ?? values.get('--server');
  if (verb === undefined || server === undefined || !verbs.includes(verb)) return undefined;
  const namespace = values.get('-n') ?? values.get('--namespace') ?? 'default';
  const target = verb === 'cp' ? operands.find((operand) => operand.includes(':'))?.split(':')[0] : operands[0];
  if (target === undefined) return undefined;
  const slash = target.lastIndexOf('/');
  const named = verb === 'cp' && slash > 0 ? target.slice(0, slash) : namespace;
  return { verb: verb as StreamCall['verb'], pod: target.slice(slash + 1), namespace: named, server, rest };
}

function split(arg: string): [string, string?] {
  const at = arg.indexOf('=');
  return at < 0 ? [arg] : [arg.slice(0, at), arg.slice(at + 1)];
}
