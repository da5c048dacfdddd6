import { isDeepStrictEqual } from 'node:util';
import {
  type Explanation,
  explain,
  explanationLines,
  firstViolation,
  introducedViolation,
  type Violation,
  violationWarning,
} from '../../access/policy/policy.ts';
import { sessionOf } from '../../access/policy/session-policy.ts';
import {
  authorCallerViolation,
  authorPermissionsViolation,
  permissionsHandedOut,
} from '../../access/policy/template-permissions.ts';
import {
  notPlanned,
  type TemplateInput,
  templatePolicy,
  templateWarnings,
} from '../../access/policy/template-policy.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import { type Decision, deny, type Handler, invalidSpec } from '../decision.ts';
import type { AdmissionPorts, PresentPlan } from '../ports.ts';

/**
 * Validating webhook of templates. It denies a spec that violates the schema, that would make the leader deny every request, or that hands
 * out permissions that the caller does not have. It warns if the leader would deny requests now because of other objects, such as a missing
 * workload. A stored violation of the rule book or of the plan denies no update; the schema and the permissions count for each new spec.
 */
export function validateTemplate(
  kind: TemplateKind,
  ports: Pick<
    AdmissionPorts,
    'missingPermissions' | 'grantable' | 'serverNamespace' | 'ownViolations' | 'presentPlan' | 'gatewayViolation'
  >,
): Handler {
  return {
    async decide({ operation, namespace, name, user, object, oldObject, dryRun }, signal, address) {
      const details = { template: name };
      const raw = own(object, 'spec');
      // Metadata of a template that predates a rule can still change, so that it can be labeled, annotated, and deleted.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return { details };
      const read = readBySchema<TemplateInput['spec']>(accessOfTemplate(kind).template.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const { grantable, serverNamespace } = ports;
      const input: TemplateInput = { kind, namespace, name, spec: read.value, grantable, serverNamespace };
      const stored = operation === 'UPDATE' ? storedInput(input, own(oldObject, 'spec')) : undefined;
      const denied = (violation: Violation, found: Omit<CheckResults, 'gateway'> = {}): Decision => ({
        ...deny(violation, details),
        warnings: dryRun ? dryRunLines(input, found) : [],
      });
      const violation = firstViolation(templatePolicy, input, stored);
      if (violation) return denied(violation);
      const handedOut = permissionsHandedOut(input);
      const authorViolation =
        authorCallerViolation(user, read.value) ??
        authorPermissionsViolation(
          user.username,
          namespace,
          await ports.missingPermissions(user, namespace, handedOut, signal),
          'to apply it',
        );
      if (authorViolation) return denied(authorViolation, { author: authorViolation });
      const ownViolations = await ports.ownViolations(input, address, signal);
      if (ownViolations !== notPlanned && ownViolations.length > 0) {
        const before = stored ? await ports.ownViolations(stored, address, signal) : [];
        // If the stored spec could not be planned, it is unknown whether the update introduced the violation. Allow it: the leader denies
        // requests.
        const introduced = before === notPlanned ? undefined : introducedViolation(ownViolations, before);
        if (introduced) return denied(introduced, { author: passed, plan: introduced });
      }
      const planProblem = ownViolations === notPlanned ? notPlanned : ownViolations[0];
      const keptViolation = firstViolation(templatePolicy, input);
      // These violations depend on other objects, which users may create or correct later. So they are warnings.
      const present: PresentPlan = planProblem || keptViolation ? {} : await ports.presentPlan(input, address, signal);
      const plan: CheckResults['plan'] = planProblem ?? (keptViolation ? undefined : (present.denial ?? passed));
      const gateway: CheckResults['gateway'] =
        sessionOf(read.value.accessConfig) && (ports.gatewayViolation() ?? passed);
      const { selectorNotes = [], commandNotes = [] } = present;
      const warnings = [...templateWarnings(input), ...selectorNotes, ...commandNotes];
      if (dryRun) return { details, warnings: [...warnings, ...dryRunLines(input, { author: passed, plan, gateway })] };
      const unusable = [keptViolation ?? plan, gateway].flatMap((found) => {
        if (found === undefined || found === passed) return [];
        return [found === notPlanned ? notPlannedWarning : violationWarning(found)];
      });
      return { details, warnings: [...unusable, ...warnings] };
    },
  };
}

const notPlannedWarning =
  'the server did not check whether requests can use this template, because that takes too much work, or because too many ' +
  'such checks wait; the condition AccessPlanValid of the stored template shows the result';

const passed = 'passed';

/** What the checks after the rule book found; undefined for those that did not run. */
interface CheckResults {
  readonly author?: Violation | typeof passed | undefined;
  readonly plan?: Violation | typeof passed | typeof notPlanned | undefined;
  /** Undefined also for a template whose users need no gateway. */
  readonly gateway?: Violation | typeof passed | undefined;
}

/** The warnings of a dry run: a line for each rule of `templatePolicy`, and for each check of `validateTemplate` after it. */
function dryRunLines(input: TemplateInput, { author, plan, gateway }: CheckResults): string[] {
  const objects = accessOfTemplate(input.kind).createsPod ? 'the Pod and the Role' : 'the Role';
  const rule = (name: string, found: CheckResults['plan'], requirement: string, remedy: string): Explanation => {
    if (found === passed) return { rule: name, verdict: 'pass', requirement };
    if (found === undefined || found === notPlanned) return { rule: name, verdict: 'unknown', requirement, remedy };
    return { rule: name, verdict: 'fail', requirement, violation: found };
  };
  const correct = 'correct what fails, and check again';
  const planRemedy =
    plan === notPlanned ? 'store the template; its condition AccessPlanValid shows the result' : correct;
  const storeIt =
    'store the template, because this dry run does not ask the API server; its condition AccessPlanValid shows the result';
  return explanationLines([
    ...explain(templatePolicy, input),
    rule('author', author, 'the author is the caller, and holds the permissions that the template hands out', correct),
    rule('plan', plan, `the server can plan ${objects} of a grant`, planRemedy),
    ...(gateway ? [rule('gateway', gateway, 'the API server forwards calls to the gateway', correct)] : []),
    rule('api-server', undefined, `the API server accepts ${objects} of a grant`, storeIt),
  ]);
}

/** The input for the spec before an update; undefined if that spec violates its schema. */
function storedInput(input: TemplateInput, oldSpec: unknown): TemplateInput | undefined {
  const read = readBySchema<TemplateInput['spec']>(
    accessOfTemplate(input.kind).template.structural.spec,
    oldSpec,
    'spec',
  );
  return read.ok ? { ...input, spec: read.value } : undefined;
}
