import { apiVersionOf } from '../../api/object.ts';
import { isWebhookDenial } from '../../kube/errors.ts';
import { findTemplate, requestResource, type TypedObject } from '../access-requests.ts';
import { approversText } from '../approver-text.ts';
import { usageProblem } from '../args.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { optionsOf } from '../option-text.ts';
import { outputForm, type Presentation, Printer } from '../output.ts';
import { plainMessage } from '../problem.ts';
import { ignoredFieldsIn } from '../request-state.ts';
import { isAboutTemplate, type RuleLine, requestLine, ruleColumns, ruleLine } from '../rule-lines.ts';
import { podFlag, requestFlags, requestManifest } from './request.ts';

export const explain: Command = {
  name: 'explain',
  summary: 'Show whether you could get access through a template, and what is missing',
  details:
    'Asks the server to check a request without creating it (dry run), and lists every rule that fails or could not be checked. Then it says which approvals the request would need, which fields of the template the API server ignores, and what the template says of claims, start times, extensions, emergencies, and sessions. It looks for no running pods. Exits with 3 if the server would deny the request.',
  args: [{ name: 'TEMPLATE', complete: 'templates' }],
  flags: [...requestFlags, podFlag],
  examples: ['explain payments-shell --for 8h'],
  run: runExplain,
};

async function runExplain(context: Context): Promise<number> {
  const { args, io } = context;
  const form = outputForm(args);
  const connection = await context.connect();
  const { type, object: template } = await findTemplate(connection, args.positionals[0] ?? '');
  if (type === 'pod' && args.text('pod') !== undefined) throw usageProblem('--pod is only for templates of type exec');
  const resource = requestResource(type);
  const manifest = { ...requestManifest(context, type), apiVersion: apiVersionOf(resource) };
  manifest.metadata.namespace = connection.namespace;
  manifest.spec = { ...(manifest.spec as object), templateName: template.metadata.name };
  const denial = await connection.cluster.client.create(resource, manifest, { dryRun: true }).then(
    () => undefined,
    (error: unknown) => {
      if (isWebhookDenial(error)) return plainMessage(error);
      throw error;
    },
  );
  const printer = new Printer(io, form, ruleTable);
  printer.add([...connection.warnings.map(requestLine), ...notesOn(context, connection, { type, object: template })]);
  printer.end();
  if (denial !== undefined) {
    io.printError(`${io.program}: the server would deny it: ${denial}\n`);
    return exits.denied;
  }
  if (!connection.warnings.some(isAboutTemplate)) return exits.done;
  io.printError(`${io.program}: the server would accept it, and probably deny it then: see what fails above\n`);
  return exits.denied;
}

/** What the rules do not cover, such as ignored fields. */
function notesOn(
  { args, io }: Context,
  connection: ClusterConnection,
  { type, object }: TypedObject,
): readonly RuleLine[] {
  const ignored = ignoredFieldsIn(object);
  const approvals = args.has('emergency') ? '' : approversText(object);
  const who = `${io.program} approvers ${type}/${object.metadata.name} ${connection.where}`;
  const notes = [
    ['ignored-fields', ignored === '' ? '' : `${ignored} (ask the author of the template)`],
    [
      'approvals',
      approvals === ''
        ? ''
        : `after the rules pass, the request waits for approvals (${approvals}); to see who can approve, if you may read bindings and roles: ${who}`,
    ],
    ...optionsOf(object),
  ] as const;
  // No dry run checks this if the server chooses the pod.
  const choosesPod = type === 'exec' && args.text('pod') === undefined;
  return [
    ...notes.filter(([, text]) => text !== '').map(([rule, text]) => ruleLine('note', rule, text)),
    ...(choosesPod ? [ruleLine('not checked', 'running-pod', runningPodText)] : []),
  ];
}

const runningPodText =
  'access opens only in a running pod of the workload; the server looks for it later (NoRunningPod)';

const ruleTable: Presentation<RuleLine> = {
  columns: ruleColumns,
  object: (line) => line,
  name: ({ rule }) => rule,
};
