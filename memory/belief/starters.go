package belief

var closedStarters = []Predicate{
	single("deployment_target", "where the project is deployed"),
	single("name", "what the subject is called"),
	single("prefers_editor", "the editor the subject likes to work in"),
	single("prefers_language", "the programming language the subject likes best"),
	single("prefers_package_manager", "the package manager the subject wants used"),
	single("prefers_response_style", "how the subject wants to be answered"),
	single("prefers_test_framework", "the test framework the subject wants used"),
	single("project_name", "what the project is called"),
	single("project_status", "how far the project is"),
	single("pronouns", "the pronouns the subject goes by"),
	single("repository_url", "where the source is kept"),
	single("role", "what the subject does, as a job or in the project"),
	single("timezone", "the time zone the subject lives or works in"),
	multi(Note, "a text kept whole because nothing more precise fits"),
	multi("project_constraint", "something the project must or must not do"),
	multi("uses_technology", "a language, library, tool or service in use"),
}

var openStarters = []Predicate{
	single("amount", "how much of something there is or was"),
	single("date", "the day something happens or happened"),
	single("diet", "how the subject eats"),
	single("email", "the subject's mail address"),
	single("lives_in", "where the subject lives"),
	single("phone", "the subject's telephone number"),
	single("status", "what state the subject is in"),
	single("work_email", "the subject's mail address at work"),
	single("works_at", "who the subject works for"),
	multi("allergic_to", "what the subject must not eat, touch or breathe"),
	multi("detail", "a particular that no other predicate fits"),
	multi("goal", "what the subject wants to reach"),
	multi("relationship", "who the subject is to somebody else"),
	{Name: "did", Cardinality: Multi, ValueType: String, Description: "something the subject did", Historical: true},
	excluding("likes", "something the subject likes", false, "dislikes"),
	excluding("dislikes", "something the subject dislikes", false, "likes"),
	excluding("owns", "something the subject has", false, "gave_away"),
	excluding("gave_away", "something the subject had and gave away", true, "owns"),
	excluding("plans", "something the subject means to do", false, "cancelled"),
	excluding("cancelled", "a plan the subject gave up", true, "plans"),
}

func single(name, description string) Predicate {
	return Predicate{Name: name, Cardinality: Single, ValueType: String, Description: description}
}

func multi(name, description string) Predicate {
	return Predicate{Name: name, Cardinality: Multi, ValueType: String, Description: description}
}

func excluding(name, description string, historical bool, excludes ...string) Predicate {
	p := multi(name, description)
	p.Historical, p.Excludes = historical, excludes
	return p
}
