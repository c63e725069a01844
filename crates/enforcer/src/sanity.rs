//! Sanity questions asked of a policy that is not in force.

use tollgate_client::{
    protocol::Refusal,
    sanity::{self, Question},
};
use tollgate_policy::built::Built;

/// Checks the decisions of a policy that is not in force yet.
pub fn ask(built: &Built, questions: &[Question]) -> Result<(), Refusal> {
    let invalid = |text: String| Refusal::new(libc::EINVAL, text);
    let mut server = built.server().map_err(|cause| invalid(cause.to_string()))?;
    sanity::hold(questions, |question| {
        let Question { source, target, class, .. } = question;
        let asked = (server.context(source), server.context(target), server.class(class));
        let (Ok(source), Ok(target), Ok(class)) = asked else {
            let text = format!("the policy does not know a context or the class of a sanity question: {question}");
            return Err(invalid(text));
        };
        let allowed = server.permissions(class, server.access(source, target, class).allowed);
        Ok(allowed.into_iter().map(str::to_owned).collect())
    })
}
