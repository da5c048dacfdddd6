import type { Resource } from '../../api/object.ts';
import { quote } from '../../kit/errors.ts';
import {
  ApiError,
  codeOf,
  isAlreadyExists,
  isConflict,
  isDryRunUnsupported,
  isNotFound,
  isWebhookDenial,
} from '../../kube/errors.ts';
import { templateResource, typeNames } from '../access-requests.ts';
import { usageProblem } from '../args.ts';
import type { ClusterConnection } from '../cluster-connection.ts';
import type { Command, Context } from '../command.ts';
import { exits } from '../command-spec.ts';
import { type Manifest, readManifests } from '../manifests.ts';
import { type Column, outputForm, type Presentation, Printer } from '../output.ts';
import { findServed, isByRbac, isNotServed, Problem, plainMessage, problemOf } from '../problem.ts';
import { type RuleLine, requestLine, ruleColumns, ruleLine, templateLine } from '../rule-lines.ts';

/** A rule for one object of a file. */
interface CheckLine extends RuleLine {
  readonly file: string;
  /** `PodAccessTemplate/payments-shell`. */
  readonly object: string;
  readonly namespace: string;
}

export const check: Command = {
  name: 'check',
  summary: 'Check manifests of templates and requests, for example in CI',
  details:
    'Asks the server to check each template and request in the files without storing it (dry run), and lists every rule that fails or could not be checked. Exits with 3 if the server would refuse one, if access could not open through a template, or if a file is no YAML; with 1 if an object could not be checked, for example because you lack a permission; with 0 otherwise. What apply only warns about, such as a missing workload, fails here. Skips other kinds. You need the permission to create, get, and update templates, and hold what they hand out.',
  args: [{ name: 'FILE', optional: true, repeated: true, complete: 'files' }],
  flags: [
    {
      name: 'filename',
      short: 'f',
      value: 'FILE',
      repeated: true,
      help: 'A file of YAML or JSON, or - for standard input. Required. More files may follow, as in -f *.yaml.',
      complete: 'files',
    },
  ],
  examples: ['check -f template.yaml', 'check -f templates/*.yaml -n payments'],
  run: runCheck,
};

async function runCheck(context: Context): Promise<number> {
  const { args, io } = context;
  const form = outputForm(args);
  const files = args.texts('filename');
  if (files.length === 0) throw usageProblem('-f is missing: check -f FILE...', 'check');
  const { found, skipped } = await readManifests([...files, ...args.positionals], io);
  if (found.length === 0) throw usageProblem('the files have no template and no request; name other files');
  const connection = await context.connect();
  const lines: CheckLine[] = [];
  try {
    for (const manifest of found) lines.push(...(await checkLines(connection, manifest)));
  } finally {
    const printer = new Printer(io, form, table);
    printer.add(lines);
    printer.end();
  }
  if (skipped > 0)
    io.printError(`note: ${skipped} ${skipped === 1 ? 'object is' : 'objects are'} no template or request: skipped\n`);
  return lines.some(({ verdict }) => verdict === 'fail')
    ? exits.denied
    : lines.some(({ rule }) => rule === noRules.rule)
      ? exits.failed
      : exits.done;
}

async function checkLines(connection: ClusterConnection, manifest: Manifest): Promise<CheckLine[]> {
  const { file, resource, object } = manifest;
  const { name, generateName } = object.metadata;
  const namespace = object.metadata.namespace ?? connection.namespace;
  const subject = { file, object: `${resource.kind}/${name || generateName || '(no name)'}`, namespace };
  try {
    const lines = await rulesFor(connection, resource, { ...object, metadata: { ...object.metadata, namespace } });
    return lines.map((line) => ({ ...subject, ...line }));
  } catch (error) {
    const { exitCode, message } = problemOf(error);
    // It says nothing about the object.
    if (isByRbac(error)) return [{ ...subject, ...noRules, requirement: message }];
    throw new Problem(exitCode, `${quote(file, 256)}, ${subject.object}: ${message}`);
  }
}

/** The warnings of a dry run, and why the API server refuses the object if no warning says so. */
async function rulesFor(
  connection: ClusterConnection,
  resource: Resource,
  object: Manifest['object'],
  isRetry = false,
): Promise<RuleLine[]> {
  const { client } = connection.cluster;
  const { name, namespace = '' } = object.metadata;
  const isTemplate = typeNames.some((type) => templateResource(type) === resource);
  const before = connection.warnings.length;
  // A new request with the name of another one is refused only after its rules are checked.
  const stored = isTemplate && name ? await findServed(client, resource, { namespace, name }) : undefined;
  const options = { dryRun: true, fieldValidation: 'Strict' } as const;
  const { resourceVersion } = stored?.metadata ?? {};
  const write =
    resourceVersion === undefined
      ? client.create(resource, object, options)
      : client.replace(resource, { ...object, metadata: { ...object.metadata, resourceVersion } }, options);
  const error = await write.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (isConflict(error) && !isRetry) return rulesFor(connection, resource, object, true);
  const refusal = error === undefined ? undefined : refusalLine(error);
  const rules = connection.warnings.slice(before).map(isTemplate ? templateLine : requestLine);
  const isExplained = refusal?.verdict === 'fail' && rules.some(({ verdict }) => verdict === 'fail');
  const lines = refusal && !isExplained ? [...rules, refusal] : rules;
  // Advice comes with rules, so notes alone are of others.
  return lines.every(({ verdict }) => verdict === 'note') ? [...lines, noRules] : lines;
}

/** @throws the error if it is not about the object. */
function refusalLine(error: unknown): RuleLine {
  if (!(error instanceof ApiError) || isDryRunUnsupported(error) || isByRbac(error)) throw error;
  if (isAlreadyExists(error))
    return ruleLine(
      'note',
      'exists',
      'a request of this name exists already; to request access again, delete it first',
    );
  if (isWebhookDenial(error)) return ruleLine('fail', codeOf(error) ?? 'Denied', plainMessage(error));
  if (isConflict(error) || (isNotFound(error) && !isNotServed(error))) return { ...noRules, requirement: error.why };
  if (![400, 403, 422].includes(error.code)) throw error;
  return ruleLine('fail', error.reason || 'Refused', error.why);
}

const noRules = ruleLine(
  'not checked',
  'no-rules',
  'the API server answers without asking drawbridge; check the webhooks: drawbridge doctor',
);

const objectColumns: readonly Column<CheckLine>[] = [
  { title: 'FILE', wide: true, text: ({ file }) => file },
  { title: 'OBJECT', long: true, text: ({ object }) => object },
];

const table: Presentation<CheckLine> = {
  columns: [...objectColumns, ...ruleColumns],
  object: (line) => line,
  name: ({ object }) => object,
};
