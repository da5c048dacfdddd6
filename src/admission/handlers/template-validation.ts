import { isDeepStrictEqual } from 'node:util';
import { explain, explanationLines, firstViolation } from '../../access/policy/policy.ts';
import { type TemplateInput, templatePolicy, templateWarnings } from '../../access/policy/template-policy.ts';
import { authorIsNotCaller, authorLacks, rightsHandedOut } from '../../access/policy/template-rights.ts';
import { accessOfTemplate } from '../../api/access/kinds.ts';
import type { TemplateKind } from '../../api/access/names.ts';
import { readBySchema } from '../../api/schema/read.ts';
import { own } from '../../kit/json-value.ts';
import { type Handler, invalidSpec, refuse } from '../decision.ts';
import type { AdmissionPorts } from '../ports.ts';

/**
 * Validating webhook of the templates: what could never be granted is refused while its author is looking, and so is what the author
 * may not do.
 */
export function validateTemplate(kind: TemplateKind, ports: Pick<AdmissionPorts, 'lacking' | 'grantable'>): Handler {
  return {
    async decide({ operation, namespace, name, user, object, oldObject, dryRun }, signal) {
      const details = { template: name };
      const raw = own(object, 'spec');
      // Templates that were stored before a rule existed can still be labelled, annotated and let go of.
      if (operation === 'UPDATE' && isDeepStrictEqual(raw, own(oldObject, 'spec'))) return { details };
      const read = readBySchema<TemplateInput['spec']>(accessOfTemplate(kind).template.structural.spec, raw, 'spec');
      if (!read.ok) return invalidSpec(read.errors);
      const input: TemplateInput = { kind, namespace, name, spec: read.value, grantable: ports.grantable };
      const violation = firstViolation(templatePolicy, input);
      const told = dryRun ? explanationLines(explain(templatePolicy, input)) : [];
      if (violation) return { ...refuse(violation, details), warnings: told };
      const unsigned = authorIsNotCaller(user, read.value);
      if (unsigned) return { ...refuse(unsigned, details), warnings: told };
      const lacking = await ports.lacking(user, namespace, rightsHandedOut(input), signal);
      const overreach = authorLacks(user.username, namespace, lacking);
      const warnings = [...templateWarnings(input), ...told];
      return overreach ? { ...refuse(overreach, details), warnings: told } : { details, warnings };
    },
  };
}
