//! Lists objects in pages, so that a long list does not overload the server.

use kube::api::{Api, ListParams};
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;

/// The default number of objects per page.
pub const PAGE: u32 = 500;

/// Reads the metadata of all objects of a kind, page by page.
pub async fn all_metadata<K>(api: &Api<K>) -> Result<Vec<PartialObjectMeta<K>>, kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut items = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match api.list_metadata(&page).await {
            // The continue token of the list has expired, so the list starts again, in one request.
            Err(kube::Error::Api(status))
                if status.code == 410 && page.continue_token.is_some() =>
            {
                return Ok(api.list_metadata(&ListParams::default()).await?.items);
            }
            answer => answer?,
        };
        items.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(items),
        }
    }
}

/// Reads all objects of a list in pages of `size` objects. The server reads pages from its store and not from its
/// cache, so the list is not out of date.
pub async fn all<K>(api: &Api<K>, params: ListParams, size: u32) -> Result<Vec<K>, kube::Error>
where
    K: Clone + DeserializeOwned + std::fmt::Debug,
{
    let mut items = Vec::new();
    let mut page = params.clone().limit(size);
    loop {
        let list = match api.list(&page).await {
            // The continue token of the list has expired, so the list starts again, in one request.
            Err(kube::Error::Api(status))
                if status.code == 410 && page.continue_token.is_some() =>
            {
                return Ok(api.list(&params).await?.items);
            }
            answer => answer?,
        };
        items.extend(list.items);
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(items),
        }
    }
}
