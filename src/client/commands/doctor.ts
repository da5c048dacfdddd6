import { isForbidden } from '../../kube/errors.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { bypassChecks } from '../doctor-bypasses.ts';
import type { Check } from '../doctor-check.ts';
import { installationChecks } from '../doctor-checks.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { plainMessage } from '../problem.ts';

interface Line {
  readonly check: string;
  readonly result: 'ok' | 'found' | 'not checked';
  readonly message: string;
}

export const doctor: Command = {
  name: 'doctor',
  summary: 'Check who can bypass drawbridge, and whether it works',
  details:
    'Each check is ok, found, or not checked. For found, the message describes the fault; if it is about a user, a group, or a ServiceAccount, remove the binding that it names, unless you intend it. For not checked, it names the missing permission or the error. Exits with 1 unless every check is ok. The checks do not list the groups system:masters and kubeadm:cluster-admins, the controller manager, the scheduler, the API server as client of the kubelets, the ServiceAccounts in the namespace of the server, and bindings of Kubernetes for its controllers in kube-system. --namespace is the namespace of the server; default: drawbridge-system.',
  flags: [
    { name: 'installation', help: 'Check only whether drawbridge works, not who can bypass it; helm test does.' },
  ],
  examples: ['doctor', 'doctor -n drawbridge-system -o wide'],
  async run(context) {
    const { args, io } = context;
    const form = outputForm(args);
    const connection = await context.connect();
    const serverNamespace = args.text('namespace') ?? 'drawbridge-system';
    const checks = [...installationChecks, ...(args.has('installation') ? [] : bypassChecks)];
    const lines = (
      await Promise.all(checks.map((check) => runCheck(check, connection, serverNamespace, context)))
    ).flat();
    const printer = new Printer(io, form, table);
    printer.add(lines);
    printer.end();
    return lines.every(({ result }) => result === 'ok') ? exits.done : exits.failed;
  },
};

async function runCheck(
  check: Check,
  connection: ClusterConnection,
  serverNamespace: string,
  { clock }: Context,
): Promise<Line[]> {
  const line = (result: Line['result'], message: string): Line => ({ check: check.name, result, message });
  try {
    const faults = await check.faults(connection, { serverNamespace, clock });
    return faults.length === 0 ? [line('ok', check.ok)] : faults.map((message) => line('found', message));
  } catch (error) {
    const why = isForbidden(error) ? 'needs a permission' : 'failed';
    return [line('not checked', `${why}: ${plainMessage(error)}`)];
  }
}

const table: Presentation<Line> = {
  columns: [
    { title: 'CHECK', text: ({ check }) => check },
    { title: 'RESULT', text: ({ result }) => result },
    { title: 'WHAT', long: true, text: ({ message }) => message },
  ],
  object: (line) => line,
  name: ({ check }) => check,
};
