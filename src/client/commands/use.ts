import { mkdir, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { isObjectName } from '../../access/policy/names.ts';
import { shellWord } from '../../kit/shell-word.ts';
import { derivedContext } from '../../kube/kubeconfig.ts';
import { requestWithFlags, typeOf } from '../access-requests.ts';
import type { Command } from '../command.ts';
import { exits, unendedArgument } from '../command-spec.ts';
import { gatewayUrl } from '../kubectl-exec.ts';
import { Problem } from '../problem.ts';
import { stateOf } from '../request-state.ts';
import { timeFrom } from '../times.ts';
import { waitUntilOpen } from './one-request.ts';
import { timeoutFlag } from './request.ts';

export const use: Command = {
  name: 'use',
  summary: 'Let kubectl, k9s, or Lens reach the pod of a request through the gateway',
  details:
    'Waits until access is open, then writes a context for it to a file in ~/.kube/drawbridge, and prints the line that selects it in a shell. The file has no credentials, so the line also names your kubeconfig.',
  args: [unendedArgument],
  flags: [timeoutFlag],
  examples: ['use payments-shell-x7k2p', 'use payments-logs-k2m4x --timeout 10m'],
  async run(context) {
    const { args, io, clock } = context;
    const timeoutMs = args.durationMs('timeout');
    const connection = await context.connect();
    const request = await waitUntilOpen(context, connection, args.positionals[0], timeoutMs);
    const { namespace = '', name } = request.metadata;
    const { pod, endsMs } = stateOf(request);
    const server = gatewayUrl(request, connection);
    if (server === undefined) {
      const direct = `kubectl get pod ${pod} ${connection.where}`;
      throw new Problem(exits.failed, `${name} lets you call the API server directly, without a context: ${direct}`);
    }
    // The names become parts of a file path.
    if (!isObjectName(namespace) || !isObjectName(name))
      throw new Problem(
        exits.failed,
        'the API server returned a request whose name or namespace is not valid; check --context',
      );
    const contextName = `drawbridge-${namespace}-${name}`;
    const derived = await derivedContext(connection.kubeconfig, { name: contextName, server, namespace });
    if (!derived) {
      const problem = 'use needs a kubeconfig, and this program runs as the ServiceAccount of its Pod';
      throw new Problem(exits.failed, `${problem}; run kubectl with --server=${server}`);
    }
    const folder = join(homedir(), '.kube', 'drawbridge');
    const file = join(folder, `${namespace}-${name}.yaml`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(file, `${derived.text}\n`, { mode: 0o600 });
    io.print(`export KUBECONFIG=${shellWord([file, ...derived.files].join(delimiter))}\n`);
    const until = endsMs === undefined ? '' : `, until ${timeFrom(endsMs, clock.now())}`;
    io.printError(
      `note: after this line, or eval "$(${io.program} use ${requestWithFlags(connection, typeOf(request), name)})", kubectl reaches pod ${pod}, and only it${until}\n`,
    );
    return exits.done;
  },
};
