#include "mqtt/control_messages.h"

#include <algorithm>
#include <random>

#include "common/system_fields.h"

namespace hydra {
namespace {

// With one topic, each publisher has its own, so the server keeps the order of its messages.
std::string own_topic(const MqttStep& step, Id publisher) {
    return step.topic + "/" + std::to_string(publisher);
}

std::string own_signals(const MqttStep& step, Id publisher) {
    return own_topic(step, publisher) + (step.shared ? "/signals" : "");
}

}  // namespace

MqttStep step_of(const Configure& command) {
    return read_system<MqttStep>(command.system);
}

std::vector<std::string> topics_of(const MqttStep& step, Id publisher, std::uint32_t topics) {
    if (topics == 1) {
        return {own_topic(step, publisher)};
    }
    return topic_names(step.topic, '/', topics);
}

std::vector<std::string> signals_of(const MqttStep& step, Id publisher,
                                    const std::vector<std::string>& topics, std::uint32_t signalled) {
    if (topics.size() == 1) {
        return {own_signals(step, publisher)};
    }
    return {topics.begin(), topics.begin() + signalled};
}

std::vector<std::string> filters(const MqttStep& step, const std::string& group,
                                 const std::vector<PublisherEndpoint>& publishers,
                                 const TopicFilter& topics) {
    if (step.shared && group.empty()) {
        throw TransportError("configure.group is empty, but shared subscriptions need a group");
    }
    std::vector<std::string> all;
    if (topics.wildcard) {
        return {step.topic + "/+"};
    }
    for (const std::uint32_t topic : topics.topics) {
        all.push_back(step.topic + "/" + std::to_string(topic));
    }
    if (topics.numbered()) {
        return all;
    }
    for (const PublisherEndpoint& it : publishers) {
        if (step.shared) {
            all.push_back("$share/" + group + "/" + own_topic(step, it.publisher));
        }
        all.push_back(own_signals(step, it.publisher));
    }
    return all;
}

std::string new_client_name(const MqttStep& step) {
    std::random_device random;
    std::string name = step.topic;
    std::ranges::replace(name, '/', '-');
    return name + "-" + std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace hydra
